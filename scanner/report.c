/* What all forms of a report need: the numbers, the exit status, places and words. */
#include "scanner/report.h"
#include "scanner/baseline.h"
#include "scanner/ignore.h"

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
  }
  totals->ignored += scan->ignored_count;
}

/* --- troubles ----------------------------------------------------------------------------------------------------- */

static void add_trouble(struct report *report, struct trouble trouble, const char *text) {
  if (report->troubles_count == report->troubles_capacity) {
    report->troubles_capacity = report->troubles_capacity ? 2 * report->troubles_capacity : 64;
    report->troubles = scan_alloc(report->troubles, report->troubles_capacity * sizeof *report->troubles);
  }
  trouble.text = scan_format("%s", text);
  report->troubles[report->troubles_count++] = trouble;
}

struct comment_place {
  struct report *report;
  size_t root;
  const char *path;
};

static void add_comment_fault(void *user, uint32_t line, const char *text) {
  const struct comment_place *place = user;
  add_trouble(place->report,
              (struct trouble){.kind = TROUBLE_COMMENT, .root = place->root, .path = place->path, .line = line}, text);
}

static void add_troubles_of(struct report *report, size_t root) {
  const struct scan *scan = &report->scans[root];
  for (size_t i = 0; i < scan->files_count; i++) {
    const struct result *result = &scan->files[i].result;
    struct trouble trouble = {.kind = result->coverage == COVERAGE_NONE ? TROUBLE_NOT_ANALYSED : TROUBLE_PARTLY,
                              .root = root,
                              .path = scan->files[i].path};
    if (result->coverage != COVERAGE_FULL)
      add_trouble(report, trouble, result->coverage_reason);
    ignore_faults(scan, result, add_comment_fault, &(struct comment_place){report, root, scan->files[i].path});
  }
  for (size_t i = 0; i < scan->notes_count; i++)
    add_trouble(report,
                (struct trouble){.kind = scan->notes[i].failed ? TROUBLE_NOT_ANALYSED : TROUBLE_LEFT_OUT,
                                 .root = root,
                                 .path = scan->notes[i].path},
                scan->notes[i].reason);
}

static int compare_troubles(const void *left, const void *right) {
  const struct trouble *a = left, *b = right;
  if (a->root != b->root)
    return a->root < b->root ? -1 : 1;
  int order = strcmp(a->path, b->path);
  if (order)
    return order;
  if (a->line != b->line)
    return a->line < b->line ? -1 : 1;
  if (a->kind != b->kind)
    return a->kind < b->kind ? -1 : 1;
  return strcmp(a->text, b->text);
}

static void add_stale(struct report *report) {
  const struct baseline *baseline = report->baseline;
  for (size_t i = 0; i < baseline->count; i++) {
    const struct baseline_entry *entry = &baseline->entries[i];
    if (!baseline_is_stale(entry, &report->scans[0]))
      continue;
    unsigned less = entry->count - entry->seen;
    char *text = scan_format("%s:%u: %u use%s of %s fewer than accepted; write the baseline again", baseline->name,
                             entry->line, less, report_plural(less), entry->symbol);
    add_trouble(report, (struct trouble){.kind = TROUBLE_STALE, .path = entry->path}, text);
    free(text);
  }
}

void report_count(struct report *report) {
  struct totals *totals = &report->totals;
  *totals = (struct totals){0};
  if (report->baseline)
    add_stale(report);
  for (size_t i = 0; i < report->count; i++) {
    count_scan(&report->scans[i], totals);
    add_troubles_of(report, i);
  }
  if (report->troubles_count)
    qsort(report->troubles, report->troubles_count, sizeof *report->troubles, compare_troubles);
  for (size_t i = 0; i < report->troubles_count; i++) {
    totals->not_analysed += report->troubles[i].kind == TROUBLE_NOT_ANALYSED;
    totals->partly += report->troubles[i].kind == TROUBLE_PARTLY;
    totals->not_entered += report->troubles[i].kind == TROUBLE_LEFT_OUT;
    totals->comment_faults += report->troubles[i].kind == TROUBLE_COMMENT;
    totals->stale += report->troubles[i].kind == TROUBLE_STALE;
  }
}

void report_free(struct report *report) {
  for (size_t i = 0; i < report->troubles_count; i++)
    free(report->troubles[i].text);
  free(report->troubles);
}

const char *report_trouble_word(const struct trouble *trouble) {
  static const char *const words[] = {[TROUBLE_NOT_ANALYSED] = "not analysed",
                                      [TROUBLE_PARTLY] = "analysed in part",
                                      [TROUBLE_LEFT_OUT] = "left out",
                                      [TROUBLE_COMMENT] = "ignore comment",
                                      [TROUBLE_STALE] = "stale in the baseline"};
  return words[trouble->kind];
}

/* --- numbers, places and words ------------------------------------------------------------------------------------ */

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
