/* Memory of one analysed file: given out in pieces, given back all at once. */
#ifndef SGL_CXX_ARENA_H
#define SGL_CXX_ARENA_H

#include <stddef.h>

struct cxx_chunk;

struct cxx_arena {
  struct cxx_chunk *chunk;
  size_t used, size; /* of the newest chunk */
};

/* Zeroed, aligned for any type. Out of memory ends the process (scan_alloc). */
void *cxx_arena_alloc(struct cxx_arena *arena, size_t size);
char *cxx_arena_copy(struct cxx_arena *arena, const void *text, size_t size); /* NUL-ended */
void cxx_arena_free(struct cxx_arena *arena);

#endif
