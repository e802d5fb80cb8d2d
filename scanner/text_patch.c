/* A patch: its new side is read file by file, as the kind of text that the file is; only added lines give findings. */
#include "scanner/text.h"

#include <stdlib.h>
#include <string.h>

/* The new side of one file. */
struct side {
  const struct text_view *patch;
  char *path; /* NULL before the first file: the message above the patch */
  uint8_t *bytes;
  size_t size, bytes_capacity;
  uint32_t *lines;
  size_t lines_count, lines_capacity;
};

static void add_line(struct side *side, const uint8_t *text, size_t length, uint32_t line) {
  if (side->size + length + 1 > side->bytes_capacity) {
    side->bytes_capacity = 2 * (side->size + length + 1);
    side->bytes = scan_alloc(side->bytes, side->bytes_capacity);
  }
  if (length)
    memcpy(side->bytes + side->size, text, length);
  side->bytes[side->size + length] = '\n';
  side->size += length + 1;
  if (side->lines_count + 2 > side->lines_capacity) {
    side->lines_capacity = 2 * (side->lines_count + 2);
    side->lines = scan_alloc(side->lines, side->lines_capacity * sizeof *side->lines);
  }
  side->lines[side->lines_count++] = line;
  side->lines[side->lines_count] = 0; /* the empty line after the last one */
}

static void flush(struct side *side) {
  struct text_view view = *side->patch;
  view.bytes = side->bytes;
  view.size = side->size;
  view.lines = side->lines;
  view.classes = NULL;
  view.kind = TEXT_DOC;
  view.style = STYLE_HASH;
  view.path = side->path ? side->path : side->patch->path;
  if (side->path)
    switch (walk_language(side->path)) {
    case LANGUAGE_PYTHON:
      view.kind = TEXT_PYTHON;
      break;
    case LANGUAGE_CXX:
      view.kind = TEXT_CXX;
      view.style = STYLE_C;
      break;
    case LANGUAGE_TEXT:
      view.kind = text_kind(side->path, side->bytes, side->size, &view.style);
      break;
    case LANGUAGE_NOTEBOOK:
    case LANGUAGE_NONE:
      view.kind = TEXT_NOTHING;
    }
  if (side->size && view.kind != TEXT_PATCH)
    text_run(&view);
  side->size = side->lines_count = 0;
}

static bool starts(const uint8_t *line, size_t length, const char *text) {
  return length >= strlen(text) && memcmp(line, text, strlen(text)) == 0;
}

/* "+++ b/path" with an optional tab and date behind it. */
static char *new_path(const uint8_t *line, size_t length) {
  size_t start = 4, end = start;
  while (end < length && line[end] != '\t' && line[end] != '\r')
    end++;
  if (end - start > 2 && line[start + 1] == '/' && (line[start] == 'a' || line[start] == 'b'))
    start += 2;
  return scan_format("%.*s", (int)(end - start), (const char *)line + start);
}

/* The counts of "@@ -a,b +c,d @@"; a missing count is 1. */
static bool hunk_counts(const uint8_t *line, size_t length, unsigned long *old, unsigned long *new) {
  char text[128];
  size_t size = length < sizeof text - 1 ? length : sizeof text - 1;
  memcpy(text, line, size);
  text[size] = '\0';
  char *at = text + 3;
  unsigned long *counts[] = {old, new};
  for (unsigned i = 0; i < 2; i++) {
    at += strspn(at, " ");
    if (*at != "-+"[i])
      return false;
    strtoul(at + 1, &at, 10);
    *counts[i] = 1;
    if (*at == ',')
      *counts[i] = strtoul(at + 1, &at, 10);
  }
  return true;
}

void text_patch(const struct text_view *view) {
  struct side side = {.patch = view};
  unsigned long old = 0, new = 0; /* lines that the hunk still has */
  uint32_t number = 1;
  for (size_t at = 0; at < view->size; number++) {
    size_t end = text_line_end(view->bytes, view->size, at), length = end - at;
    const uint8_t *line = view->bytes + at;
    at = end + 1;
    if (old || new) {
      bool context = length == 0 || *line == ' ' || *line == '\r'; /* mailers take the space of an empty line */
      if (context || *line == '+') {
        add_line(&side, line + (length > 0), length > 0 ? length - 1 : 0, context ? 0 : number);
        new -= new > 0;
      }
      if (context || *line == '-')
        old -= old > 0;
      continue;
    }
    if (starts(line, length, "@@ ") && hunk_counts(line, length, &old, &new))
      continue;
    if (starts(line, length, "+++ ")) {
      flush(&side);
      free(side.path);
      side.path = new_path(line, length);
    } else if (!side.path && !starts(line, length, "diff ") && !starts(line, length, "--- ") &&
               !starts(line, length, "index ")) {
      add_line(&side, line, length, number);
    }
  }
  flush(&side);
  free(side.path);
  free(side.bytes);
  free(side.lines);
}
