/* One Python text with all that is known of it, and where its findings stand in the file. */
#include "scanner/python_front.h"

#include <stdlib.h>
#include <string.h>

/* All that is known of the tree. */
static const char *look(struct py_unit *unit) {
  if (unit->tree.refused)
    return unit->tree.refused;
  uint32_t offset = 0;
  const char *why = py_check(&unit->tree, &offset);
  if (why) {
    unit->refused_at = offset;
    return why;
  }
  py_scopes_open(&unit->scopes, &unit->tree, &unit->arena);
  py_guards_open(unit);
  return NULL;
}

const char *py_unit_parse(struct py_unit *unit) {
  py_tree_open(&unit->tree, unit->source.bytes, unit->source.size, unit->source.start);
  return look(unit);
}

const char *py_unit_open(struct py_unit *unit, const struct scan *scan, const struct source_file *file) {
  *unit = (struct py_unit){.scan = scan, .path = file->path};
  const char *why = NULL;
  if (py_index_take(scan, file, unit))
    return look(unit);
  unit->decoded = py_source_open(&unit->source, file->bytes, file->size, &why);
  return unit->decoded ? py_unit_parse(unit) : why;
}

void py_unit_close(struct py_unit *unit) {
  py_scopes_close(&unit->scopes);
  py_tree_close(&unit->tree);
  py_source_close(&unit->source);
  free(unit->guards);
  free(unit->probes);
  free(unit->probe_list);
  free(unit->kept);
  arena_free(&unit->arena);
}

void py_lines_open(struct py_unit *unit) {
  size_t count = 0, capacity = 0;
  const uint8_t *bytes = unit->file->bytes, *end = bytes + unit->file->size;
  for (const uint8_t *at = bytes; at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++) {
    PY_GROW(unit->lines, count, capacity);
    unit->lines[count++] = (size_t)(at - bytes);
  }
  unit->lines_count = count;
}

void py_position(const struct py_unit *unit, size_t offset, uint32_t *line, uint32_t *column) {
  if (unit->notebook)
    offset = py_notebook_raw(unit->notebook, offset);
  size_t low = 0, high = unit->lines_count; /* the number of newlines before the offset */
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (unit->lines[middle] < offset)
      low = middle + 1;
    else
      high = middle;
  }
  *line = (uint32_t)low + 1;
  *column = (uint32_t)(offset - (low ? unit->lines[low - 1] + 1 : 0)) + 1;
}

void py_find(struct py_unit *unit, size_t offset, const struct catalog_symbol *symbol, enum verdict verdict,
             enum evidence evidence, enum level level, const char *message) {
  uint32_t line, column;
  py_position(unit, offset, &line, &column);
  PY_GROW(unit->findings, unit->findings_count, unit->findings_capacity);
  unit->findings[unit->findings_count++] = (struct finding){.line = line,
                                                            .column = column,
                                                            .symbol = symbol,
                                                            .verdict = verdict,
                                                            .evidence = unit->notebook ? EVIDENCE_NOTEBOOK : evidence,
                                                            .level = level,
                                                            .message = (char *)(uintptr_t)message};
}

static int compare_findings(const void *left, const void *right) {
  const struct finding *a = left, *b = right;
  if (a->line != b->line)
    return a->line < b->line ? -1 : 1;
  return (a->column > b->column) - (a->column < b->column);
}

void py_findings_close(struct py_unit *unit) {
  if (unit->findings_count)
    qsort(unit->findings, unit->findings_count, sizeof *unit->findings, compare_findings);
  for (size_t i = 0; i < unit->findings_count; i++) {
    const struct finding *finding = &unit->findings[i];
    result_find(unit->result, finding->line, finding->column, finding->symbol, finding->verdict, finding->evidence,
                finding->level, "%s", finding->message);
  }
  free(unit->findings);
  unit->findings = NULL;
}

const char *py_moved(struct py_unit *unit, const struct catalog_symbol *symbol, const char *module) {
  char *moved = rules_moved(symbol, module);
  const char *text = arena_copy(&unit->arena, moved, strlen(moved));
  free(moved);
  return text;
}

const char *py_left(struct py_unit *unit, const struct catalog_symbol *symbol, enum catalog_layer layer,
                    const char *name) {
  char *left = rules_left(unit->scan, symbol, layer, CATALOG_CUDA, name);
  const char *text = arena_copy(&unit->arena, left, strlen(left));
  free(left);
  return text;
}
