/* JUnit XML as CI systems read it: a suite for each file with live uses, a case for each of them; it fails, or is
 * skipped when the use is accepted. One suite more has what else is wrong, as errors. Mentions fail nothing and are
 * left out. */
#include "scanner/report.h"

#include <stdlib.h>
#include <string.h>

struct counts {
  size_t tests, failures, errors, skipped;
};

static void print_text(const char *text) {
  report_xml(stdout, text, strlen(text));
}

static void count_file(const struct source_file *file, struct counts *counts) {
  for (size_t i = 0; i < file->result.findings_count; i++) {
    const struct finding *finding = &file->result.findings[i];
    if (finding->verdict == VERDICT_MENTION)
      continue;
    counts->tests++;
    counts->failures += finding->standing == STANDING_OPEN;
    counts->skipped += finding->standing != STANDING_OPEN;
  }
}

static void print_counts(const struct counts *counts) {
  printf(" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\"", counts->tests, counts->failures,
         counts->errors, counts->skipped);
}

static void open_suite(const char *path, const struct counts *counts) {
  fputs("  <testsuite name=\"", stdout);
  print_text(path);
  putchar('"');
  print_counts(counts);
  fputs(" time=\"0\">\n", stdout);
}

static void open_case(const char *path, const char *name, unsigned line) {
  fputs("    <testcase classname=\"", stdout);
  print_text(path);
  fputs("\" name=\"", stdout);
  print_text(name);
  fputs("\" file=\"", stdout);
  print_text(path);
  if (line)
    printf("\" line=\"%u", line);
  fputs("\" time=\"0\">\n", stdout);
}

static void print_finding(const struct report_walk *walk, const char *path) {
  const struct finding *finding = walk->finding;
  uint32_t column = report_column(walk->file, finding, walk->line_start, walk->line_end, false);
  char *name = scan_format("%s in line %u, column %u", finding->symbol->id, finding->line, column);
  open_case(path, name, finding->line);
  if (finding->standing == STANDING_OPEN) {
    printf("      <failure type=\"%s\" message=\"", report_verdict(finding->verdict));
    print_text(finding->message);
    fputs("\">", stdout);
    char *place = scan_format("%s:%u:%u: ", path, finding->line, column);
    print_text(place);
    print_text(finding->message);
    fputs("</failure>\n", stdout);
    free(place);
  } else {
    printf("      <skipped message=\"%s\"/>\n",
           finding->standing == STANDING_KNOWN ? "in the baseline" : "ignored by a comment");
  }
  fputs("    </testcase>\n", stdout);
  free(name);
}

static void print_files(const struct report *report) {
  struct report_walk walk = {.report = report};
  bool more = report_next(&walk);
  while (more) {
    const struct source_file *file = walk.file;
    struct counts counts = {0};
    count_file(file, &counts);
    char *path = report_path(walk.scan, file->path);
    if (counts.tests)
      open_suite(path, &counts);
    for (; more && walk.file == file; more = report_next(&walk))
      if (walk.finding->verdict != VERDICT_MENTION)
        print_finding(&walk, path);
    if (counts.tests)
      fputs("  </testsuite>\n", stdout);
    free(path);
  }
}

static void print_troubles(const struct report *report) {
  for (size_t i = 0; i < report->troubles_count; i++) {
    const struct trouble *trouble = &report->troubles[i];
    if (trouble->kind == TROUBLE_LEFT_OUT)
      continue;
    char *path = report_path(&report->scans[trouble->root], trouble->path);
    char *name = scan_format("%s: %s", report_trouble_word(trouble), trouble->text);
    open_case(path, name, trouble->line);
    fputs("      <error message=\"", stdout);
    print_text(name);
    fputs("\"/>\n    </testcase>\n", stdout);
    free(name);
    free(path);
  }
}

bool report_junit(const struct report *report) {
  const struct totals *totals = &report->totals;
  struct counts all = {0}, others = {0};
  for (size_t root = 0; root < report->count; root++)
    for (size_t i = 0; i < report->scans[root].files_count; i++)
      count_file(&report->scans[root].files[i], &all);
  others.errors = others.tests = report->troubles_count - totals->not_entered;
  bool none = all.tests + others.tests == 0; /* some readers take a file without a case for a failure */
  others.tests += none;
  all.tests += others.tests;
  all.errors = others.errors;
  fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"sgl-migrate\"", stdout);
  print_counts(&all);
  fputs(" time=\"0\">\n", stdout);
  print_files(report);
  if (others.tests) {
    open_suite("sgl-migrate", &others);
    if (none)
      fputs("    <testcase classname=\"sgl-migrate\" name=\"no live use of a removed name\" time=\"0\"/>\n", stdout);
    print_troubles(report);
    fputs("  </testsuite>\n", stdout);
  }
  fputs("</testsuites>\n", stdout);
  return true;
}
