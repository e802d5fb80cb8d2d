/* Formatted text in the arena of a file, and text that grows. */
#include "scanner/python_front.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

char *py_text_format(struct arena *arena, const char *format, ...) {
  va_list list, again;
  va_start(list, format);
  va_copy(again, list);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *text = arena_alloc(arena, (size_t)(length < 0 ? 0 : length) + 1);
  if (length > 0)
    vsnprintf(text, (size_t)length + 1, format, list);
  va_end(list);
  return text;
}

void py_buffer_add(struct py_buffer *buffer, const void *text, size_t size) {
  if (buffer->size + size + 1 > buffer->capacity) {
    buffer->capacity = 2 * (buffer->size + size + 1);
    buffer->text = scan_alloc(buffer->text, buffer->capacity);
  }
  if (size)
    memcpy(buffer->text + buffer->size, text, size);
  buffer->size += size;
  buffer->text[buffer->size] = '\0';
}

void py_buffer_puts(struct py_buffer *buffer, const char *text) {
  py_buffer_add(buffer, text, strlen(text));
}

void py_buffer_free(struct py_buffer *buffer) {
  free(buffer->text);
  *buffer = (struct py_buffer){0};
}
