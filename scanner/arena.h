/* Memory of one analysed file: given out in pieces, given back all at once. */
#ifndef SGL_SCANNER_ARENA_H
#define SGL_SCANNER_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
  struct arena_chunk *chunk;
  size_t used, size; /* of the newest chunk */
};

/* Zeroed, aligned for any type. Out of memory ends the process (scan_alloc). */
void *arena_alloc(struct arena *arena, size_t size);
char *arena_copy(struct arena *arena, const void *text, size_t size); /* NUL-ended */
void arena_free(struct arena *arena);

#endif
