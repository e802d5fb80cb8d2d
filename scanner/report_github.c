/* Workflow commands of GitHub Actions: the runner turns these lines into annotations beside the changed lines. It shows
 * the first ten errors, ten warnings and ten notices of a step, so live uses come before mentions and the rest is
 * counted in one line more. */
#include "scanner/report.h"

#include <stdlib.h>
#include <string.h>

/* Of each kind and step; GitHub documents it under "usage limits" of annotations. */
#define SHOWN 10

/* Data of a command: a percent sign and line ends are encoded; in a property also what separates properties. */
static void print_data(const char *text, bool property) {
  for (const unsigned char *c = (const unsigned char *)text; *c; c++)
    if (*c == '%' || *c < 0x20 || *c == 0x7f || (property && (*c == ':' || *c == ',')))
      printf("%%%02X", *c);
    else
      putchar(*c);
}

static void print_place(const char *command, const char *path) {
  printf("::%s file=", command);
  print_data(path, true);
}

static const char *command_of(enum level level) {
  return level == LEVEL_ERROR ? "error" : level == LEVEL_WARNING ? "warning" : "notice";
}

static void print_finding(const struct report_walk *walk) {
  const struct finding *finding = walk->finding;
  uint32_t column = report_column(walk->file, finding, walk->line_start, walk->line_end, false);
  uint32_t length = report_name_length(walk->file, finding, walk->line_start, walk->line_end);
  char *path = report_path(walk->scan, walk->file->path);
  print_place(command_of(finding->level), path);
  printf(",line=%u,col=%u,endColumn=%u,title=", finding->line, column, column + length - 1);
  char *title = scan_format("%s: %s", finding->symbol->id, report_verdict(finding->verdict));
  print_data(title, true);
  fputs("::", stdout);
  print_data(finding->message, false);
  putchar('\n');
  free(title);
  free(path);
}

static size_t print_troubles(const struct report *report) {
  size_t count = 0;
  for (size_t i = 0; i < report->troubles_count; i++) {
    const struct trouble *trouble = &report->troubles[i];
    if (trouble->kind == TROUBLE_LEFT_OUT)
      continue;
    char *path = report_path(&report->scans[trouble->root], trouble->path);
    print_place("warning", path);
    if (trouble->line)
      printf(",line=%u", trouble->line);
    printf(",title=%s::", report_trouble_word(trouble));
    print_data(trouble->text, false);
    putchar('\n');
    free(path);
    count++;
  }
  return count;
}

bool report_github(const struct report *report) {
  size_t counts[3] = {0}, hidden = 0;
  for (enum level level = LEVEL_ERROR; level <= LEVEL_NOTE; level++)
    for (struct report_walk walk = {.report = report}; report_next(&walk);)
      if (walk.finding->level == level && walk.finding->standing == STANDING_OPEN) {
        print_finding(&walk);
        counts[level]++;
      }
  counts[LEVEL_WARNING] += print_troubles(report);
  for (enum level level = LEVEL_ERROR; level <= LEVEL_NOTE; level++)
    hidden += counts[level] > SHOWN ? counts[level] - SHOWN : 0;
  /* Plain lines stand in the step's log and are no annotations. */
  printf("sgl-migrate: %zu errors, %zu warnings, %zu notices\n", counts[LEVEL_ERROR], counts[LEVEL_WARNING],
         counts[LEVEL_NOTE]);
  if (hidden)
    printf("sgl-migrate: GitHub shows %d annotations of a kind for each step: %zu of these are in this log only; "
           "--format sarif has no such limit\n",
           SHOWN, hidden);
  return true;
}
