/* The Python front's entry: one file, from its bytes to findings and edits. */
#include "scanner/python_front.h"

#include <stdlib.h>

/* Line of the place that Python would refuse. */
static void refuse(struct py_unit *unit, const char *why, bool placed) {
  uint32_t line = 0, column = 0;
  if (placed)
    py_position(unit, unit->refused_at, &line, &column);
  if (line)
    result_coverage(unit->result, COVERAGE_PARTLY, "cannot be parsed as Python (line %u: %s); searched as text", line,
                    why);
  else
    result_coverage(unit->result, COVERAGE_PARTLY, "cannot be read as Python (%s); searched as text", why);
  py_text_analyse(unit, why);
}

static void analyse_unit(struct py_unit *unit) {
  struct py_uses uses;
  py_ignores_read(unit);
  py_uses_collect(unit, &uses);
  py_uses_judge(unit, &uses);
  py_uses_report(unit, &uses);
  py_edits_make(unit, &uses);
  py_uses_free(&uses);
  if (unit->scan->options.changed)
    py_changed(unit);
}

static void talk_analyse(const struct scan *scan, const struct source_file *file, struct result *result,
                         const struct py_talk *talk) {
  struct py_unit unit = {.scan = scan, .path = file->path, .file = file, .result = result, .talk = talk};
  unit.source = (struct py_source){.bytes = file->bytes, .size = file->size};
  py_lines_open(&unit);
  for (size_t i = 0; i < talk->texts_count; i++)
    py_mentions(&unit, file->bytes + talk->texts[i].start, NULL, talk->texts[i].start, talk->texts[i].size);
  py_findings_close(&unit);
  free(unit.lines);
  py_unit_close(&unit);
}

void python_analyse(const struct scan *scan, const struct source_file *file, struct result *result) {
  bool edited = file->bytes != file->first_bytes; /* then it has to be Python, with a name in it or not */
  if (!file->bytes || !file->size)
    return;
  struct py_talk talk = {0};
  enum py_need need = edited || scan->options.changed ? PY_NEEDS_TREE : py_candidate(scan, file, &talk);
  if (need == PY_NEEDS_TALK)
    talk_analyse(scan, file, result, &talk);
  py_talk_close(&talk);
  if (need != PY_NEEDS_TREE)
    return;
  struct py_unit unit;
  struct py_notebook *notebook = NULL;
  const char *why = NULL;
  if (file->language == LANGUAGE_NOTEBOOK) {
    unit = (struct py_unit){.scan = scan, .path = file->path, .file = file, .result = result};
    py_lines_open(&unit);
    notebook = py_notebook_open(&unit, &why);
    unit.decoded = notebook != NULL;
    if (notebook)
      why = py_unit_parse(&unit);
    else
      unit.source = (struct py_source){.bytes = file->bytes, .size = file->size};
  } else {
    why = py_unit_open(&unit, scan, file);
    unit.file = file;
    unit.result = result;
    py_lines_open(&unit);
  }
  if (why)
    refuse(&unit, why, unit.decoded && !unit.tree.refused);
  else
    analyse_unit(&unit);
  if (notebook) {
    py_notebook_text(&unit, notebook);
    py_notebook_close(notebook);
  }
  py_findings_close(&unit);
  free(unit.lines);
  py_unit_close(&unit);
}
