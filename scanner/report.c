/* What all forms of a report need: the numbers, the exit status, places and words. */
#include "scanner/report.h"

#include <stdlib.h>
#include <string.h>

static void count_scan(const struct scan *scan, struct totals *totals) {
  for (size_t i = 0; i < scan->files_count; i++) {
    const struct result *result = &scan->files[i].result;
    size_t live = 0;
    for (size_t k = 0; k < result->findings_count; k++) {
      const struct finding *finding = &result->findings[k];
      bool open = finding->standing == STANDING_OPEN;
      totals->ignored_by_comment += finding->standing == STANDING_IGNORED;
      totals->in_baseline += finding->standing == STANDING_KNOWN;
      totals->rewrite += open && finding->verdict == VERDICT_REWRITE;
      totals->report += open && finding->verdict == VERDICT_REPORT;
      totals->mention += open && finding->verdict == VERDICT_MENTION;
      live += open && finding->verdict != VERDICT_MENTION;
    }
    totals->files += scan->files[i].language != LANGUAGE_NONE && !scan->files[i].elsewhere;
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

void report_count(struct report *report) {
  report->totals = (struct totals){0};
  for (size_t i = 0; i < report->count; i++)
    count_scan(&report->scans[i], &report->totals);
}

int report_status(const struct totals *totals) {
  return (totals->rewrite || totals->report ? EXIT_USES : 0) | (totals->report ? EXIT_PERSON : 0) |
         (totals->not_analysed || totals->partly ? EXIT_NOT_ANALYSED : 0) |
         (totals->stale || totals->comment_faults ? EXIT_STALE : 0);
}

char *report_route(const struct options *options) {
  return options->sglang_release ? scan_format("sglang@%s", options->sglang_release) : scan_format("jit");
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
  uint32_t column = 1, c;
  for (size_t at = line_start; at < name;) {
    size_t length = report_character(file->bytes + at, name - at, &c);
    bool mark = at == 0 && c == 0xfeff;
    column += mark ? 0 : utf16 && length == 4 ? 2 : 1;
    at += length;
  }
  return column;
}

uint32_t report_name_length(const struct source_file *file, const struct finding *finding, size_t line_start,
                            size_t line_end) {
  size_t at = line_start + (finding->column - 1), stop = at;
  while (stop < line_end && (file->bytes[stop] == '_' || (file->bytes[stop] >= '0' && file->bytes[stop] <= '9') ||
                             (file->bytes[stop] >= 'a' && file->bytes[stop] <= 'z') ||
                             (file->bytes[stop] >= 'A' && file->bytes[stop] <= 'Z')))
    stop++;
  return stop > at ? (uint32_t)(stop - at) : 1;
}

const char *report_verdict(enum verdict verdict) {
  static const char *const words[] = {
      [VERDICT_REWRITE] = "rewrite", [VERDICT_REPORT] = "report", [VERDICT_MENTION] = "mention"};
  return words[verdict];
}

const char *report_evidence(enum evidence evidence) {
  static const char *const words[] = {
      [EVIDENCE_AST] = "ast",           [EVIDENCE_LEXICAL] = "lexical", [EVIDENCE_STRING] = "string",
      [EVIDENCE_IMPORT] = "import",     [EVIDENCE_BUILD] = "build",     [EVIDENCE_ELF] = "elf",
      [EVIDENCE_NOTEBOOK] = "notebook", [EVIDENCE_TEXT] = "text"};
  return words[evidence];
}

const char *report_level(enum level level) {
  static const char *const words[] = {[LEVEL_ERROR] = "error", [LEVEL_WARNING] = "warning", [LEVEL_NOTE] = "note"};
  return words[level];
}

const char *report_plural(size_t count) {
  return count == 1 ? "" : "s";
}

bool report_next(struct report_walk *walk) {
  while (walk->root < walk->report->count) {
    walk->scan = &walk->report->scans[walk->root];
    while (walk->file_index < walk->scan->files_count) {
      walk->file = &walk->scan->files[walk->file_index];
      if (walk->finding_index < walk->file->result.findings_count) {
        if (walk->finding_index == 0) {
          walk->line = 1;
          walk->offset = 0;
        }
        walk->finding = &walk->file->result.findings[walk->finding_index++];
        report_line(walk->file, walk->finding, &walk->line, &walk->offset, &walk->line_end);
        walk->line_start = walk->offset;
        return true;
      }
      walk->finding_index = 0;
      walk->file_index++;
    }
    walk->file_index = 0;
    walk->root++;
  }
  return false;
}
