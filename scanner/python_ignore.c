/* The comments of a Python text that accept uses. */
#include "scanner/ignore.h"
#include "scanner/python_front.h"

#include <stdlib.h>

static uint32_t line_at(const void *user, size_t offset) {
  uint32_t line, column;
  py_position(user, offset, &line, &column);
  return line;
}

void py_ignores_take(struct py_unit *unit, const uint8_t *classes) {
  const struct py_source *source = &unit->source;
  if (ignore_wanted(source->bytes, source->size))
    ignore_read(unit->scan, unit->result,
                &(struct ignore_text){source->bytes, source->size, classes, IGNORE_BRACES_COUNT, line_at, unit});
}

void py_ignores_read(struct py_unit *unit) {
  if (!ignore_wanted(unit->source.bytes, unit->source.size))
    return;
  uint8_t *classes = scan_alloc(NULL, unit->source.size);
  memset(classes, IGNORE_CODE, unit->source.size);
  for (py_id node = 1; node < unit->tree.count; node++) {
    const struct py_node *at = &unit->tree.nodes[node];
    if (at->kind == PY_COMMENT || at->kind == PY_STRING)
      memset(classes + at->start, at->kind == PY_COMMENT ? IGNORE_COMMENT : IGNORE_STRING, at->end - at->start);
  }
  py_ignores_take(unit, classes);
  free(classes);
}
