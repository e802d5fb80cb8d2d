/* The growing array that the grammar's token scanner is written with; its source package comes without this header. Out
 * of memory ends the process with the scanner's own status (EXIT_FAULT in scanner/scanner.h). */
#ifndef SGL_GRAMMAR_ARRAY_H
#define SGL_GRAMMAR_ARRAY_H

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define Array(T)                                                                                                       \
  struct {                                                                                                             \
    T *contents;                                                                                                       \
    uint32_t size, capacity;                                                                                           \
  }

static inline void *array_grown(void *contents, uint32_t *capacity, uint32_t wanted, size_t element) {
  if (wanted <= *capacity)
    return contents;
  uint32_t larger = wanted < 8 ? 8 : 2 * wanted;
  contents = realloc(contents, larger * element);
  if (!contents)
    _exit(16);
  *capacity = larger;
  return contents;
}

#define array_init(array) ((array)->contents = NULL, (array)->size = 0, (array)->capacity = 0)
#define array_delete(array) (free((array)->contents), array_init(array))
#define array_get(array, index) (&(array)->contents[index])
#define array_back(array) (&(array)->contents[(array)->size - 1])
#define array_pop(array) ((array)->contents[--(array)->size])
#define array_reserve(array, wanted)                                                                                   \
  ((array)->contents = array_grown((array)->contents, &(array)->capacity, (wanted), sizeof *(array)->contents))
#define array_push(array, element)                                                                                     \
  (array_reserve((array), (array)->size + 1), (array)->contents[(array)->size++] = (element))

#endif
