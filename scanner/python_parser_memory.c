/* Memory for tree-sitter. It asks for a hundred thousand small pieces a file, and its tree is copied and thrown away:
 * the pieces are cut from blocks, one that is freed is kept for the next of its size, and all go back at once, without
 * a walk over the tree. */
#include "scanner/python_front.h"

#include <stddef.h>
#include <stdlib.h>
#include <tree_sitter/api.h>

#define BLOCK ((size_t)64 << 10)
#define UNIT ((size_t)16)
#define SIZES 256 /* larger pieces than so many units are arrays that grow: what they leave is not used again */

struct block {
  struct block *older;
  uint64_t bytes[];
};

struct piece {
  size_t size; /* in units, with this */
  union {
    struct piece *next; /* of a free one */
    uint64_t bytes[1];
  };
};

/* Of the parser of this thread, until py_parser_memory_free. */
static _Thread_local struct {
  struct block *block;
  uint8_t *at;
  size_t left;
  struct piece *free[SIZES];
} memory;

static void *take(size_t size) {
  size_t units = (size + offsetof(struct piece, bytes) + UNIT - 1) / UNIT;
  struct piece *piece = units < SIZES ? memory.free[units] : NULL;
  if (piece) {
    memory.free[units] = piece->next;
    return piece->bytes;
  }
  if (memory.left < units * UNIT) {
    size_t room = units * UNIT > BLOCK ? units * UNIT : BLOCK;
    struct block *block = scan_alloc(NULL, sizeof *block + room);
    block->older = memory.block;
    memory.block = block;
    memory.at = (uint8_t *)block->bytes;
    memory.left = room;
  }
  piece = (void *)memory.at;
  memory.at += units * UNIT;
  memory.left -= units * UNIT;
  piece->size = units;
  return piece->bytes;
}

static void *take_zeroed(size_t count, size_t size) {
  return memset(take(count * size), 0, count * size);
}

static struct piece *piece_of(void *bytes) {
  return (void *)((uint8_t *)bytes - offsetof(struct piece, bytes));
}

static void give(void *bytes) {
  if (!bytes)
    return;
  struct piece *piece = piece_of(bytes);
  if (piece->size >= SIZES)
    return;
  piece->next = memory.free[piece->size];
  memory.free[piece->size] = piece;
}

static void *change(void *bytes, size_t size) {
  if (!bytes)
    return take(size);
  size_t old = piece_of(bytes)->size * UNIT - offsetof(struct piece, bytes);
  if (size <= old)
    return bytes;
  void *new = memcpy(take(size), bytes, old);
  give(bytes);
  return new;
}

void py_parser_memory_use(void) {
  ts_set_allocator(take, take_zeroed, change, give);
}

void py_parser_memory_free(void) {
  while (memory.block) {
    struct block *older = memory.block->older;
    free(memory.block);
    memory.block = older;
  }
  memset(&memory, 0, sizeof memory);
}
