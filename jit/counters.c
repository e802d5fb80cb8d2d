/* Counters. None is touched by a call that finds its kernel in memory. */
#include "internal.h"
#include <string.h>
#include <time.h>

struct jit_counters jit_counters;

int64_t jit_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void sgl_jit_get_counters(sgl_jit_counters *counters, size_t size) {
  sgl_jit_counters now = {0};
#define READ(name) now.name = atomic_load_explicit(&jit_counters.name, memory_order_relaxed);
  JIT_COUNTERS(READ)
#undef READ
  size_t known = size < sizeof now ? size : sizeof now;
  memcpy(counters, &now, known);
  memset((char *)counters + known, 0, size - known);
}
