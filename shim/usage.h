/* Who still uses the deleted names: counts for each call site, the callers' places, and the kernels that were run.
 *
 * Counting is a relaxed atomic addition in a table that only grows: no lock, no allocation, no clock. Threads that meet
 * at one place add to different counters, mostly. What a first call of a place needs besides (its caller's name, the
 * time) is done once. After a fork the child counts from zero. Writing is usage_write.c's. */
#ifndef SGL_COMPAT_USAGE_H
#define SGL_COMPAT_USAGE_H

#include "shim/include/sgl_kernel_compat.h"
#include "shim/serve.h"

#include <stdatomic.h>
#include <stdint.h>

enum { USAGE_STAGES = 4, USAGE_SAMPLES = 16 }; /* stages: sgl_compat_stage */

/* Which of the counters is this thread's: stacks lie apart, and no thread-local storage is needed. */
enum { USAGE_SHARD_BITS = 3, USAGE_SHARDS = 1 << USAGE_SHARD_BITS };
static inline unsigned usage_shard(void) {
  uint64_t stack = (uint64_t)(uintptr_t)__builtin_frame_address(0) >> 18;               /* a quarter of a mebibyte */
  return (unsigned)((stack * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - USAGE_SHARD_BITS)); /* Fibonacci hashing */
}

/* A call site, told apart by the return address, the symbol and the face. The first cache line is only read, once there
 * is a site; the counters have lines of their own. */
struct usage_site {
  _Alignas(64) _Atomic uintptr_t key;
  _Atomic(const struct usage_caller *) caller; /* NULL: not known yet, or one that stands for others */
  _Atomic uint64_t failed;                     /* calls that ended in an error */
  _Atomic uint32_t first;                      /* second of the first call since the process began or was forked */
  atomic_bool warned;                          /* warn.c: this site has warned */
  struct {
    _Alignas(64) _Atomic uint64_t calls[USAGE_STAGES];
  } shards[USAGE_SHARDS];
};

/* Where a site lies. Strings are the site's own and stay, also when the file has been unloaded. */
struct usage_caller {
  const char *file; /* path of the shared object or program; "": in no loaded file */
  const char *function;
  unsigned long offset, function_offset; /* of the call, one byte before the return address: addr2line tells its line */
};

/* The site of a call; created when it is new. When the table is full, one that stands for all the others. Never NULL.
 */
struct usage_site *usage_site(sgl_compat_call call, enum serve_kernel kernel, const void *address);

/* The caller at the address with which the site was asked for. Looked up once. NULL without memory. */
const struct usage_caller *usage_caller(struct usage_site *site, const void *address);

/* What usage_count does at the first call of a site, in each of its counters. */
void usage_first(struct usage_site *site);

/* One call more; returns how many this counter had in this stage before. */
static inline uint64_t usage_count(struct usage_site *site, sgl_compat_stage stage) {
  _Atomic uint64_t *calls = &site->shards[usage_shard()].calls[stage];
  uint64_t before = atomic_fetch_add_explicit(calls, 1, memory_order_relaxed);
  if (before == 0)
    usage_first(site);
  return before;
}

static inline void usage_failed(struct usage_site *site) {
  atomic_fetch_add_explicit(&site->failed, 1, memory_order_relaxed);
}

/* Tell the sampler about this call of an operator, if it is one of the first or their number is a power of two. */
void usage_sample(enum serve_kernel kernel);
static inline bool usage_is_sampled(uint64_t before) {
  return before < USAGE_SAMPLES || (before & (before - 1)) == 0;
}

/* A kernel of the JIT library has run. output_dtype: an sgl_jit_dtype. */
void usage_kernel(enum serve_kernel kernel, int64_t n, int64_t k, int output_dtype);

/* This process uses the library: from now on it is worth a file, also when nothing is counted. */
void usage_begin(void);
bool usage_has_begun(void);

/* --- for usage_write.c -------------------------------------------------------------------------------------------- */

/* One place and its counts. */
struct usage_row {
  const char *symbol, *removed_in, *face; /* face: cxx | operator | python */
  uint64_t calls[USAGE_STAGES], samples, failed;
  uint32_t first;
  const struct usage_caller *caller; /* of C++ */
  const char *module, *file;         /* of Python; NULL: no Python place is known */
  unsigned line;
};

/* All places with a count, in an order that does not depend on the run; to be freed. NULL without memory. */
struct usage_row *usage_rows(size_t *count);

/* The kernels that ran, as sgl-jit names them ("dsv3_router_gemm:256x7168:float32"), from index 0 on; false at the end.
 * `lost`: calls of kernels that had no place in the table any more. */
bool usage_kernel_row(size_t index, char *text, size_t size, uint64_t *calls);
uint64_t usage_kernels_lost(void);

/* Is the symbol served by somebody else at this face, so that its uses do not come here? */
bool usage_is_uncounted(unsigned symbol, sgl_compat_call call);

/* Everything that was counted, for a look whether there is something new. */
uint64_t usage_total(void);

/* Called by usage_begin the first time in a process, and after a fork, in the child. */
void usage_write_begin(void);
void usage_write_forked(void);
/* Called when the library is first used, and at each new call site, in the thread that calls: who the process is may be
 * known by now. */
void usage_write_look(void);

#endif
