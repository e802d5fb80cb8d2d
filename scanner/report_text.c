/* Output for people. */
#include "scanner/baseline.h"
#include "scanner/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Folders and links that are named in the summary. */
#define NOTES_SHOWN 20
/* Columns of a source line that are shown; of a longer one, those around the name. */
#define LINE_SHOWN 120
#define LINE_BEFORE 40
#define LINE_INDENT "    "
#define TAB_STOP 8

bool report_colour(void) {
  const char *no_color = getenv("NO_COLOR");
  const char *terminal = getenv("TERM");
  return isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(terminal && strcmp(terminal, "dumb") == 0);
}

static const char *verdict_colour(enum verdict verdict) {
  return verdict == VERDICT_REWRITE ? "\x1b[32m" : verdict == VERDICT_REPORT ? "\x1b[31m" : "\x1b[2m";
}

/* --- the source line ---------------------------------------------------------------------------------------------- */

/* Columns of the character at `at` when the line has been shown up to `column`. */
static unsigned columns_of(uint32_t c, unsigned column) {
  return c == '\t' ? TAB_STOP - column % TAB_STOP : report_width(c);
}

/* Where to begin, so that the name at `name` comes after at most LINE_BEFORE columns, when the whole is too long. */
static size_t window_start(const uint8_t *bytes, size_t start, size_t name) {
  size_t begin = name;
  unsigned columns = 0;
  while (begin > start && columns < LINE_BEFORE) {
    size_t previous = begin - 1; /* back over the bytes that continue a character */
    while (previous > start && begin - previous < 4 && (bytes[previous] & 0xc0) == 0x80)
      previous--;
    uint32_t c;
    if (report_character(bytes + previous, begin - previous, &c) != begin - previous)
      previous = begin - 1;
    columns += columns_of(c, 0);
    begin = previous;
  }
  return begin;
}

static bool is_longer(const uint8_t *bytes, size_t start, size_t end) {
  unsigned columns = 0;
  for (size_t at = start; at < end && columns <= LINE_SHOWN;) {
    uint32_t c;
    size_t length = report_character(bytes + at, end - at, &c);
    columns += columns_of(c, columns);
    at += length;
  }
  return columns > LINE_SHOWN;
}

/* The line with a caret under the name. Tabs become blanks, so that both lines agree on every terminal. */
static void print_source(const struct report_walk *walk, const char *colour) {
  const uint8_t *bytes = walk->file->bytes;
  size_t start = walk->line_start, end = walk->line_end;
  size_t name = start + walk->finding->column - 1;
  if (!bytes || name > end)
    return;
  size_t name_end = name + report_name_length(walk->file, walk->finding, start, end);
  while (end > name && bytes[end - 1] == '\r')
    end--;
  if (start == 0 && end >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 && name >= 3)
    start = 3;
  bool longer = is_longer(bytes, start, end);
  size_t at = longer ? window_start(bytes, start, name) : start;
  bool cut = at > start;
  fputs(LINE_INDENT, stdout);
  if (cut)
    fputs("...", stdout);
  unsigned column = 0, caret = 0, under = 0;
  while (at < end && (column < LINE_SHOWN || at < name_end)) {
    uint32_t c;
    size_t length = report_character(bytes + at, end - at, &c);
    unsigned width = columns_of(c, column);
    if (at < name)
      caret += width;
    else if (at < name_end)
      under += width;
    if (c == '\t') {
      printf("%*s", (int)width, "");
    } else {
      char one[5] = {0};
      memcpy(one, bytes + at, length);
      if (*one) /* a NUL byte ends the text that report_plain gets */
        report_plain(stdout, one);
      else
        fputs("\\x00", stdout);
    }
    column += width;
    at += length;
  }
  printf("%s\n" LINE_INDENT "%*s%s^", at < end ? "..." : "", (int)(caret + (cut ? 3 : 0)), "", colour);
  for (unsigned i = 1; i < under; i++)
    putchar('~');
  printf("%s\n", *colour ? "\x1b[0m" : "");
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static void print_left_out(const struct report *report) {
  size_t shown = 0;
  for (size_t i = 0; i < report->troubles_count; i++) {
    const struct trouble *trouble = &report->troubles[i];
    if (trouble->kind != TROUBLE_LEFT_OUT || shown++ >= NOTES_SHOWN)
      continue;
    char *path = report_path(&report->scans[trouble->root], trouble->path);
    fputs("left out: ", stdout);
    report_plain(stdout, path);
    printf(" (%s)\n", trouble->text);
    free(path);
  }
  if (shown > NOTES_SHOWN)
    printf("left out: %zu more; --format sarif names all\n", shown - NOTES_SHOWN);
}

static void print_summary(const struct report *report) {
  const struct totals *totals = &report->totals;
  size_t live = totals->rewrite + totals->report;
  if (report->fix)
    printf("%zu file%s fixed; ", report->fixed, report_plural(report->fixed));
  printf("%zu live use%s%s in %zu file%s: %zu to rewrite, %zu for a person; %zu mention%s", live, report_plural(live),
         report->fix ? " left" : "", totals->files_with_uses, report_plural(totals->files_with_uses), totals->rewrite,
         totals->report, totals->mention, report_plural(totals->mention));
  if (totals->ignored_by_comment)
    printf("; %zu ignored by comments", totals->ignored_by_comment);
  if (totals->in_baseline)
    printf("; %zu in the baseline", totals->in_baseline);
  if (report->baseline && report->baseline->moved)
    printf(" (%zu in moved files)", report->baseline->moved);
  char *route = report_route(&report->scans[0].options);
  printf("\n%zu file%s looked at, against kernel %s, to %s; %zu not analysed, %zu in part", totals->files,
         report_plural(totals->files), report->scans[0].options.kernel, route, totals->not_analysed, totals->partly);
  if (totals->ignored)
    printf(", %zu ignored by git", totals->ignored);
  if (report->shards)
    printf("; shard %u of %u", report->shard, report->shards);
  printf("\n");
  free(route);
}

bool report_text(const struct report *report) {
  bool colour = report_colour();
  char *path = NULL;
  const struct source_file *file = NULL;
  for (struct report_walk walk = {.report = report}; report_next(&walk);) {
    const struct finding *finding = walk.finding;
    if (finding->standing != STANDING_OPEN || (finding->verdict == VERDICT_MENTION && report->fix))
      continue;
    if (walk.file != file) {
      free(path);
      file = walk.file;
      path = report_path(walk.scan, file->path);
    }
    const char *begin = colour ? verdict_colour(finding->verdict) : "";
    report_plain(stdout, path);
    printf(":%u:%u: %s%s%s %s: ", finding->line, report_column(file, finding, walk.line_start, walk.line_end, false),
           begin, report_verdict(finding->verdict), colour ? "\x1b[0m" : "", finding->symbol->id);
    report_plain(stdout, finding->message);
    putchar('\n');
    print_source(&walk, begin);
  }
  free(path);
  print_summary(report);
  print_left_out(report);
  return true;
}

/* --- standard error ----------------------------------------------------------------------------------------------- */

void report_trouble(const struct report *report) {
  for (size_t i = 0; i < report->troubles_count; i++) {
    const struct trouble *trouble = &report->troubles[i];
    if (trouble->kind == TROUBLE_LEFT_OUT)
      continue;
    char *path = report_path(&report->scans[trouble->root], trouble->path);
    fputs("sgl-migrate: ", stderr);
    report_plain(stderr, path);
    if (trouble->line)
      fprintf(stderr, ":%u", trouble->line);
    fprintf(stderr, ": %s: ", report_trouble_word(trouble));
    report_plain(stderr, trouble->text);
    fputc('\n', stderr);
    free(path);
  }
}
