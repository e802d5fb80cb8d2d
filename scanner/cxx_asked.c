/* Who asked for what: the analysis of a C++ file notes the key of each fact of other files that it asks for, whatever
 * the answer, so that a cache knows which changes of other files it need not care about. */
#include "scanner/cxx_facts.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static _Thread_local struct cxx_keys *asking;

uint32_t cxx_key(enum cxx_fact kind, const void *text, size_t length) {
  uint32_t key = (uint32_t)XXH3_64bits_withSeed(text, length, kind);
  return key ? key : 1;
}

static uint32_t *slot_of(const struct cxx_keys *keys, uint32_t key) {
  uint32_t at = key & (keys->capacity - 1);
  while (keys->slots[at] && keys->slots[at] != key)
    at = (at + 1) & (keys->capacity - 1);
  return &keys->slots[at];
}

static void grow(struct cxx_keys *keys) {
  struct cxx_keys larger = {.count = keys->count, .capacity = keys->capacity ? 2 * keys->capacity : 256};
  larger.slots = scan_alloc(NULL, larger.capacity * sizeof *larger.slots);
  memset(larger.slots, 0, larger.capacity * sizeof *larger.slots);
  for (uint32_t i = 0; i < keys->capacity; i++)
    if (keys->slots[i])
      *slot_of(&larger, keys->slots[i]) = keys->slots[i];
  free(keys->slots);
  *keys = larger;
}

void cxx_keys_add(struct cxx_keys *keys, uint32_t key) {
  if (2 * keys->count >= keys->capacity)
    grow(keys);
  uint32_t *slot = slot_of(keys, key);
  keys->count += *slot == 0;
  *slot = key;
}

bool cxx_keys_has(const struct cxx_keys *keys, uint32_t key) {
  return keys->count && *slot_of(keys, key) == key;
}

void cxx_keys_free(struct cxx_keys *keys) {
  free(keys->slots);
  *keys = (struct cxx_keys){0};
}

struct cxx_keys *cxx_asked_into(struct cxx_keys *keys) {
  struct cxx_keys *before = asking;
  asking = keys;
  return before;
}

void cxx_asked(enum cxx_fact kind, const void *text, size_t length) {
  if (asking)
    cxx_keys_add(asking, cxx_key(kind, text, length));
}
