/* Output for people, and the numbers that both outputs and the exit status need. */
#include "scanner/scanner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void report_count(const struct scan *scan, struct totals *totals) {
  for (size_t i = 0; i < scan->files_count; i++) {
    const struct result *result = &scan->files[i].result;
    size_t live = 0;
    for (size_t k = 0; k < result->findings_count; k++) {
      enum verdict verdict = result->findings[k].verdict;
      totals->rewrite += verdict == VERDICT_REWRITE;
      totals->report += verdict == VERDICT_REPORT;
      totals->mention += verdict == VERDICT_MENTION;
      live += verdict != VERDICT_MENTION;
    }
    totals->files += scan->files[i].language != LANGUAGE_NONE;
    totals->files_with_uses += live > 0;
    totals->not_analysed += result->coverage == COVERAGE_NONE;
    totals->partly += result->coverage == COVERAGE_PARTLY;
  }
  for (size_t i = 0; i < scan->notes_count; i++) {
    totals->not_analysed += scan->notes[i].failed;
    totals->not_entered += !scan->notes[i].failed;
  }
  totals->ignored += scan->ignored_count;
}

int report_status(const struct totals *totals) {
  return (totals->rewrite || totals->report ? EXIT_USES : 0) | (totals->report ? EXIT_PERSON : 0) |
         (totals->not_analysed || totals->partly ? EXIT_NOT_ANALYSED : 0);
}

char *report_path(const struct scan *scan, const char *path) {
  if (scan->root_is_file)
    return scan_format("%s", scan->root);
  const char *root = scan->root;
  size_t length = strlen(root);
  while (length > 1 && root[length - 1] == '/')
    length--;
  if (length == 1 && root[0] == '.')
    return scan_format("%s", path);
  if (strcmp(path, ".") == 0)
    return scan_format("%.*s", (int)length, root);
  return scan_format("%.*s%s%s", (int)length, root, root[length - 1] == '/' ? "" : "/", path);
}

/* A name with control characters must not move the cursor or look like two lines. */
static void print_plain(FILE *stream, const char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < 0x20 || *text == 0x7f)
      fprintf(stream, "\\x%02x", (unsigned char)*text);
    else
      putc(*text, stream);
}

/* Bytes of the UTF-8 sequence at `at`; 1 for a byte that starts none. */
static size_t sequence_length(const uint8_t *at, size_t left) {
  size_t length = *at < 0x80 ? 1 : *at >= 0xf0 && *at < 0xf5 ? 4 : *at >= 0xe0 ? 3 : *at >= 0xc2 ? 2 : 1;
  if (*at >= 0xf5 || length > left)
    return 1;
  for (size_t i = 1; i < length; i++)
    if ((at[i] & 0xc0) != 0x80)
      return 1;
  return length;
}

void report_line(const struct source_file *file, const struct finding *finding, uint32_t *line, size_t *offset,
                 size_t *end) {
  const uint8_t *newline;
  while (*line < finding->line && (newline = memchr(file->bytes + *offset, '\n', file->size - *offset))) {
    *offset = (size_t)(newline - file->bytes) + 1;
    (*line)++;
  }
  newline = *offset < file->size ? memchr(file->bytes + *offset, '\n', file->size - *offset) : NULL;
  *end = newline ? (size_t)(newline - file->bytes) : file->size;
}

uint32_t report_column(const struct source_file *file, const struct finding *finding, size_t line_start,
                       size_t line_end, bool utf16) {
  size_t name = line_start + (finding->column - 1);
  if (name > line_end)
    return finding->column;
  uint32_t column = 1;
  for (size_t at = line_start; at < name;) {
    size_t length = sequence_length(file->bytes + at, name - at);
    bool mark = at == 0 && length == 3 && memcmp(file->bytes, "\xef\xbb\xbf", 3) == 0;
    column += mark ? 0 : utf16 && length == 4 ? 2 : 1;
    at += length;
  }
  return column;
}

static const char *const verdict_names[] = {
    [VERDICT_REWRITE] = "rewrite", [VERDICT_REPORT] = "report", [VERDICT_MENTION] = "mention"};

static const char *verdict_colour(enum verdict verdict) {
  return verdict == VERDICT_REWRITE ? "\x1b[32m" : verdict == VERDICT_REPORT ? "\x1b[31m" : "\x1b[2m";
}

void report_text(const struct scan *scan, bool mentions) {
  const char *no_color = getenv("NO_COLOR");
  const char *terminal = getenv("TERM");
  bool colour = isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(terminal && strcmp(terminal, "dumb") == 0);
  for (size_t i = 0; i < scan->files_count; i++) {
    const struct source_file *file = &scan->files[i];
    char *path = report_path(scan, file->path);
    uint32_t line = 1;
    size_t offset = 0, end;
    for (size_t k = 0; k < file->result.findings_count; k++) {
      const struct finding *finding = &file->result.findings[k];
      if (finding->verdict == VERDICT_MENTION && !mentions)
        continue;
      report_line(file, finding, &line, &offset, &end);
      print_plain(stdout, path);
      printf(":%u:%u: %s%s%s %s: ", finding->line, report_column(file, finding, offset, end, false),
             colour ? verdict_colour(finding->verdict) : "", verdict_names[finding->verdict], colour ? "\x1b[0m" : "",
             finding->symbol->id);
      print_plain(stdout, finding->message);
      putchar('\n');
    }
    free(path);
  }
}

static void print_not_analysed(const struct scan *scan, const char *path, const char *what, const char *reason) {
  char *shown = report_path(scan, path);
  fputs("sgl-migrate: ", stderr);
  print_plain(stderr, shown);
  fprintf(stderr, ": %s: %s\n", what, reason);
  free(shown);
}

void report_not_analysed(const struct scan *scan) {
  for (size_t i = 0; i < scan->files_count; i++) {
    const struct result *result = &scan->files[i].result;
    if (result->coverage != COVERAGE_FULL)
      print_not_analysed(scan, scan->files[i].path,
                         result->coverage == COVERAGE_NONE ? "not analysed" : "analysed in part",
                         result->coverage_reason);
  }
  for (size_t i = 0; i < scan->notes_count; i++)
    if (scan->notes[i].failed)
      print_not_analysed(scan, scan->notes[i].path, "not analysed", scan->notes[i].reason);
}
