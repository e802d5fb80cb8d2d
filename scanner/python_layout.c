/* Where a statement stands: its indentation, the end of its line, its neighbours on the line. */
#include "scanner/python_front.h"

/* Is there a backslash and a newline right before `at`? Returns the length of both. */
static size_t continuation_before(const uint8_t *bytes, size_t at) {
  if (at >= 2 && bytes[at - 1] == '\n' && bytes[at - 2] == '\\')
    return 2;
  return at >= 3 && bytes[at - 1] == '\n' && bytes[at - 2] == '\r' && bytes[at - 3] == '\\' ? 3 : 0;
}

static size_t continuation_at(const uint8_t *bytes, size_t size, size_t at) {
  if (size - at >= 2 && bytes[at] == '\\' && bytes[at + 1] == '\n')
    return 2;
  return size - at >= 3 && bytes[at] == '\\' && bytes[at + 1] == '\r' && bytes[at + 2] == '\n' ? 3 : 0;
}

/* The line ending of the file's own bytes at or before `at`; a lone carriage return is a newline in the source. */
static const char *line_ending(const struct py_unit *unit, size_t at) {
  const uint8_t *bytes = unit->source.bytes;
  if (at == unit->source.size)
    while (at > 0 && bytes[at - 1] != '\n')
      at--;
  else
    at = bytes[at] == '\r' ? at + 2 : at + 1;
  if (at == 0)
    return "\n";
  if (!unit->notebook && unit->file->bytes[at - 1] == '\r')
    return "\r";
  return at >= 2 && bytes[at - 2] == '\r' ? "\r\n" : "\n";
}

struct py_layout py_layout(struct py_unit *unit, py_id statement) {
  const uint8_t *bytes = unit->source.bytes;
  size_t size = unit->source.size, at = unit->tree.nodes[statement].start, step;
  struct py_layout layout = {0};
  for (;;) {
    while (at > unit->source.start && py_blank(bytes[at - 1]))
      at--;
    if ((step = continuation_before(bytes, at)) == 0)
      break;
    at -= step;
  }
  layout.follows = at > unit->source.start && bytes[at - 1] != '\n';
  size_t indent = at;
  while (py_blank(bytes[indent]))
    if (bytes[indent++] == '\f')
      at = indent; /* columns count anew behind a form feed */
  layout.indent = arena_copy(&unit->arena, bytes + at, indent - at);
  at = unit->tree.nodes[statement].end;
  for (;;) {
    while (at < size && py_blank(bytes[at]))
      at++;
    if (at == size || (step = continuation_at(bytes, size, at)) == 0)
      break;
    at += step;
  }
  layout.followed = at < size && bytes[at] == ';';
  while (at < size && bytes[at] != '\n' && !(bytes[at] == '\r' && at + 1 < size && bytes[at + 1] == '\n'))
    at++;
  layout.line_end = at;
  layout.newline = line_ending(unit, at);
  return layout;
}
