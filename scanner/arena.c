/* Memory of one analysed file. */
#include "scanner/arena.h"

#include "scanner/scanner.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_SIZE ((size_t)64 << 10)

struct arena_chunk {
  struct arena_chunk *older;
  alignas(max_align_t) unsigned char bytes[];
};

void *arena_alloc(struct arena *arena, size_t size) {
  size = (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
  if (!arena->chunk || arena->size - arena->used < size) {
    size_t wanted = size > CHUNK_SIZE ? size : CHUNK_SIZE;
    struct arena_chunk *chunk = scan_alloc(NULL, sizeof *chunk + wanted);
    chunk->older = arena->chunk;
    *arena = (struct arena){chunk, 0, wanted};
  }
  void *memory = arena->chunk->bytes + arena->used;
  arena->used += size;
  return memset(memory, 0, size);
}

char *arena_copy(struct arena *arena, const void *text, size_t size) {
  char *copy = arena_alloc(arena, size + 1);
  if (size)
    memcpy(copy, text, size);
  return copy;
}

void arena_free(struct arena *arena) {
  while (arena->chunk) {
    struct arena_chunk *older = arena->chunk->older;
    free(arena->chunk);
    arena->chunk = older;
  }
  *arena = (struct arena){0};
}
