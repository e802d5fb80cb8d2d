/* Memory that lives as long as one file is looked at. */
#include "scanner/python_front.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define CHUNK ((size_t)16 << 10)

struct py_chunk {
  struct py_chunk *next;
  size_t size, used;
  max_align_t data[];
};

void *py_take(struct py_arena *arena, size_t size) {
  size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
  struct py_chunk *chunk = arena->chunks;
  if (!chunk || chunk->size - chunk->used < size) {
    size_t room = size > CHUNK ? size : CHUNK;
    chunk = scan_alloc(NULL, sizeof *chunk + room);
    *chunk = (struct py_chunk){arena->chunks, room, 0};
    arena->chunks = chunk;
  }
  void *taken = (char *)chunk->data + chunk->used;
  chunk->used += size;
  return memset(taken, 0, size);
}

char *py_text_copy(struct py_arena *arena, const void *text, size_t size) {
  char *copy = py_take(arena, size + 1);
  if (size)
    memcpy(copy, text, size);
  return copy;
}

char *py_text_format(struct py_arena *arena, const char *format, ...) {
  va_list list, again;
  va_start(list, format);
  va_copy(again, list);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *text = py_take(arena, (size_t)(length < 0 ? 0 : length) + 1);
  if (length > 0)
    vsnprintf(text, (size_t)length + 1, format, list);
  va_end(list);
  return text;
}

void py_arena_free(struct py_arena *arena) {
  while (arena->chunks) {
    struct py_chunk *next = arena->chunks->next;
    free(arena->chunks);
    arena->chunks = next;
  }
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
