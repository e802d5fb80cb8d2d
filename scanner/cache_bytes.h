/* The bytes of a cache file: numbers as they are in memory, texts with their length in front and a NUL behind. What is
 * damaged or cut off is seen by the reader, and never read behind. */
#ifndef SGL_SCANNER_CACHE_BYTES_H
#define SGL_SCANNER_CACHE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache_reader {
  const uint8_t *bytes;
  size_t size, at;
  bool bad;
};

/* A number of up to 8 bytes; 0 when it is not there. */
uint64_t cache_get(struct cache_reader *reader, size_t size);
/* It lies in the bytes; "" when it is not there. */
const char *cache_get_text(struct cache_reader *reader);
/* A count whose entries take at least `least` bytes each. */
uint32_t cache_get_count(struct cache_reader *reader, size_t least);
/* `size` bytes, or NULL. */
const uint8_t *cache_get_bytes(struct cache_reader *reader, size_t size);

struct cache_writer {
  uint8_t *bytes;
  size_t size, capacity;
};

void cache_put(struct cache_writer *writer, const void *bytes, size_t size);
void cache_put_number(struct cache_writer *writer, uint64_t value, size_t size);
void cache_put_text(struct cache_writer *writer, const char *text);
/* A number of 4 bytes that is known only later. */
void cache_patch(struct cache_writer *writer, size_t at, uint32_t value);

#endif
