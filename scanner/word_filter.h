/* Nearly every word is in none of the tables that are asked for it: its ends and its length say so before it is hashed
 * or compared. */
#ifndef SGL_SCANNER_WORD_FILTER_H
#define SGL_SCANNER_WORD_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* By the first and the last byte of a word, the lengths that it can have, as bits. */
struct word_filter {
  uint64_t first[256], last[256];
};

static inline uint64_t word_filter_bit(size_t length) {
  return (uint64_t)1 << (length < 63 ? length : 63);
}

static inline void word_filter_add(struct word_filter *filter, const void *word, size_t length) {
  const uint8_t *bytes = word;
  if (length) {
    filter->first[bytes[0]] |= word_filter_bit(length);
    filter->last[bytes[length - 1]] |= word_filter_bit(length);
  }
}

/* May the word be one that was added? Never the empty one. */
static inline bool word_filter_may(const struct word_filter *filter, const void *word, size_t length) {
  const uint8_t *bytes = word;
  return length && (filter->first[bytes[0]] & filter->last[bytes[length - 1]] & word_filter_bit(length));
}

#endif
