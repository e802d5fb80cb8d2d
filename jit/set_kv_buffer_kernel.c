/* set_kv_buffer_kernel: keys and values into slots of a cache, as they are. */
#include "native.h"
#include <inttypes.h>
#include <limits.h>
#include <string.h>

enum { K_CACHE, V_CACHE, LOC, K, V, TENSORS };
enum { THREADS = 256, PIECE = 16, LEAST_PIECE = 8, MOST_BLOCKS = 1 << 14 };

static const sgl_jit_dtype loc_types[] = {SGL_JIT_DTYPE_INT32, SGL_JIT_DTYPE_INT64, SGL_JIT_DTYPE_OTHER};

/* A tensor as rows of elements that lie in one piece each. */
struct rows {
  int64_t count, elements, pitch; /* in elements */
};

/* The first dimension is that of the rows, unless there are others of them and the tensor is contiguous. */
static sgl_jit_status rows_of(const struct jit_argument *a, int64_t count, struct rows *rows, struct jit_message m) {
  const sgl_jit_tensor *t = a->t;
  if (t->ndim < 1)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "%s must have at least 1 dimension, got 0", a->name);
  int64_t all = jit_elements(t), step = 1;
  rows->count = count;
  if (t->sizes[0] != count) {
    if (count == 0 || all % count)
      return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                      "%s must have a row for each of the %" PRId64 " elements of loc, got %" PRId64, a->name, count,
                      t->sizes[0]);
    rows->elements = rows->pitch = all / count;
    return jit_check_contiguous(a, m);
  }
  rows->elements = count ? all / count : 0;
  for (int d = t->ndim - 1; d > 0 && all > 0; d--) {
    if (t->sizes[d] != 1 && t->strides[d] != step)
      return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                      "each row of %s must lie in one piece, got a stride of %" PRId64 " in dimension %d, not %" PRId64
                      "; call .contiguous()",
                      a->name, t->strides[d], d, step);
    step *= t->sizes[d];
  }
  rows->pitch = count == 1 ? rows->elements : t->strides[0];
  return SGL_JIT_OK;
}

static sgl_jit_status check_same_rows(const struct jit_argument *a, const struct rows *rows,
                                      const struct jit_argument *like, const struct rows *like_rows,
                                      struct jit_message m) {
  if (rows->elements != like_rows->elements)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                    "rows of %s must have as many elements as those of %s, %" PRId64 ", got %" PRId64, a->name,
                    like->name, like_rows->elements, rows->elements);
  return SGL_JIT_OK;
}

/* Both of a pair have one layout, as in the deleted kernel. */
static sgl_jit_status check_pair(const struct jit_argument *a, const struct rows *rows, const struct jit_argument *like,
                                 const struct rows *like_rows, struct jit_message m) {
  sgl_jit_status status = check_same_rows(a, rows, like, like_rows, m);
  if (status != SGL_JIT_OK)
    return status;
  if (rows->count != like_rows->count || rows->pitch != like_rows->pitch)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                    "%s must have rows as %s, %" PRId64 " of them %" PRId64 " elements apart, got %" PRId64
                    " of them %" PRId64 " apart",
                    a->name, like->name, like_rows->count, like_rows->pitch, rows->count, rows->pitch);
  return SGL_JIT_OK;
}

static sgl_jit_status check_pieces(const struct jit_argument a[], const struct store_kv *s, struct jit_message m) {
  if (s->row_bytes % LEAST_PIECE || s->pitch % LEAST_PIECE || s->cache_pitch % LEAST_PIECE)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                    "rows must be a multiple of %d bytes, and so far apart, got %lld, %lld in k and %lld in k_cache",
                    LEAST_PIECE, s->row_bytes, s->pitch, s->cache_pitch);
  for (int i = 0; i < TENSORS; i++)
    if (i != LOC && (uintptr_t)a[i].t->data % LEAST_PIECE)
      return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                      "%s must start at a multiple of %d bytes, got one that starts %d bytes past", a[i].name,
                      LEAST_PIECE, (int)((uintptr_t)a[i].t->data % LEAST_PIECE));
  return SGL_JIT_OK;
}

static bool is_whole(const struct store_kv *s) {
  uintptr_t all = (uintptr_t)s->k | (uintptr_t)s->v | (uintptr_t)s->k_cache | (uintptr_t)s->v_cache |
                  (uintptr_t)s->row_bytes | (uintptr_t)s->pitch | (uintptr_t)s->cache_pitch;
  return all % PIECE == 0 && s->tokens * (s->row_bytes / PIECE) <= INT_MAX;
}

static sgl_jit_status check_kinds(const struct jit_argument a[], struct jit_message m) {
  sgl_jit_status status;
  if ((status = jit_check_rank(&a[LOC], 1, m)) || (status = jit_check_dtype(&a[LOC], loc_types, m)) ||
      (status = jit_check_contiguous(&a[LOC], m)))
    return status;
  if (jit_element_size(a[K_CACHE].t->dtype) == 0)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                    "k_cache must be of a dtype that is known here, got another dtype; pass views of uint8");
  for (int i = V_CACHE; i < TENSORS; i++)
    if (i != LOC && (status = jit_check_same_dtype(&a[i], &a[K_CACHE], m)))
      return status;
  return SGL_JIT_OK;
}

static sgl_jit_status check(const sgl_jit_tensor *const t[], const int64_t numbers[], struct jit_call *call,
                            struct jit_message m) {
  (void)numbers;
  const struct jit_argument a[TENSORS] = {
      {"k_cache", t[K_CACHE]}, {"v_cache", t[V_CACHE]}, {"loc", t[LOC]}, {"k", t[K]}, {"v", t[V]}};
  struct rows rows[TENSORS] = {{0, 0, 0}};
  sgl_jit_status status;
  if ((status = jit_check_tensors(a, TENSORS, m)) || (status = check_kinds(a, m)))
    return status;
  for (int i = 0; i < TENSORS; i++) {
    int64_t count = i >= K ? t[LOC]->sizes[0] : t[i]->ndim ? t[i]->sizes[0] : 0;
    if (i != LOC && (status = rows_of(&a[i], count, &rows[i], m)))
      return status;
  }
  if ((status = check_pair(&a[V_CACHE], &rows[V_CACHE], &a[K_CACHE], &rows[K_CACHE], m)) ||
      (status = check_pair(&a[V], &rows[V], &a[K], &rows[K], m)) ||
      (rows[K].count > 0 && rows[K_CACHE].count > 0 &&
       (status = check_same_rows(&a[K], &rows[K], &a[K_CACHE], &rows[K_CACHE], m))) ||
      (status = jit_check_places(a, TENSORS, m)))
    return status;
  int64_t size = (int64_t)jit_element_size(t[K]->dtype);
  struct store_kv s = {.k = t[K]->data,
                       .v = t[V]->data,
                       .k_cache = t[K_CACHE]->data,
                       .v_cache = t[V_CACHE]->data,
                       .loc = t[LOC]->data,
                       .tokens = rows[K].count,
                       .slots = rows[K_CACHE].count,
                       .row_bytes = rows[K].elements * size,
                       .pitch = rows[K].pitch * size,
                       .cache_pitch = rows[K_CACHE].pitch * size,
                       .is_wide = t[LOC]->dtype == SGL_JIT_DTYPE_INT64};
  bool empty = s.tokens == 0 || s.row_bytes == 0;
  if (!empty && (status = check_pieces(a, &s, m)))
    return status;
  *call = (struct jit_call){.cuda = t[K]->device_type == SGL_JIT_DEVICE_CUDA,
                            .device = t[K]->device_index,
                            .empty = empty,
                            .dtype = t[K]->dtype,
                            .whole = is_whole(&s),
                            .a.store = s};
  return SGL_JIT_OK;
}

static int64_t slot_of(const struct store_kv *s, int64_t token) {
  return s->is_wide ? ((const int64_t *)s->loc)[token] : ((const int32_t *)s->loc)[token];
}

static sgl_jit_status reference(const struct jit_call *call, struct jit_message m) {
  const struct store_kv *s = &call->a.store;
  for (int64_t t = 0; t < s->tokens; t++)
    if (slot_of(s, t) < 0 || slot_of(s, t) >= s->slots)
      return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                      "loc[%" PRId64 "] must be one of the %" PRId64 " slots of k_cache, got %" PRId64, t,
                      (int64_t)s->slots, slot_of(s, t));
  for (int64_t t = 0; t < s->tokens; t++) {
    int64_t to = slot_of(s, t) * s->cache_pitch;
    memcpy((char *)s->k_cache + to, (const char *)s->k + t * s->pitch, (size_t)s->row_bytes);
    memcpy((char *)s->v_cache + to, (const char *)s->v + t * s->pitch, (size_t)s->row_bytes);
  }
  return SGL_JIT_OK;
}

static int steps(const struct jit_call *call, struct jit_step step[]) {
  const struct store_kv *s = &call->a.store;
  int64_t pieces = s->tokens * (s->row_bytes / (call->whole ? PIECE : LEAST_PIECE));
  int64_t blocks = (pieces + THREADS - 1) / THREADS;
  step[0] = (struct jit_step){.entry = !call->whole, .blocks = blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS};
  return 1;
}

static const struct jit_native store = {JIT_SET_KV_BUFFER, check, reference, steps};

sgl_jit_status sgl_jit_set_kv_buffer_kernel(const sgl_jit_tensor *k_cache, const sgl_jit_tensor *v_cache,
                                            const sgl_jit_tensor *loc, const sgl_jit_tensor *k, const sgl_jit_tensor *v,
                                            void *stream, char *message, size_t message_size) {
  const sgl_jit_tensor *const t[] = {k_cache, v_cache, loc, k, v};
  return jit_native_run(&store, false, t, NULL, stream, message, message_size);
}

sgl_jit_status sgl_jit_reference_set_kv_buffer_kernel(const sgl_jit_tensor *k_cache, const sgl_jit_tensor *v_cache,
                                                      const sgl_jit_tensor *loc, const sgl_jit_tensor *k,
                                                      const sgl_jit_tensor *v, char *message, size_t message_size) {
  const sgl_jit_tensor *const t[] = {k_cache, v_cache, loc, k, v};
  return jit_native_run(&store, true, t, NULL, NULL, message, message_size);
}
