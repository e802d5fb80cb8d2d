/* downcast_fp8: keys and values to float8_e4m3fn, into slots of a cache. */
#include "native.h"
#include <inttypes.h>
#include <limits.h>

enum { K, V, K_OUT, V_OUT, K_SCALE, V_SCALE, LOC, TENSORS };
enum { MULT, OFFSET };
enum { THREADS = 256, PIECE = 16, MOST_BLOCKS = 1 << 14 };

static const sgl_jit_dtype in_types[] = {SGL_JIT_DTYPE_BFLOAT16, SGL_JIT_DTYPE_FLOAT16, SGL_JIT_DTYPE_OTHER};
static const sgl_jit_dtype out_types[] = {SGL_JIT_DTYPE_FLOAT8_E4M3FN, SGL_JIT_DTYPE_UINT8, SGL_JIT_DTYPE_OTHER};
static const sgl_jit_dtype scale_types[] = {SGL_JIT_DTYPE_FLOAT32, SGL_JIT_DTYPE_OTHER};
static const sgl_jit_dtype loc_types[] = {SGL_JIT_DTYPE_INT64, SGL_JIT_DTYPE_OTHER};

static sgl_jit_status check_kinds(const struct jit_argument a[], struct jit_message m) {
  sgl_jit_status status;
  if ((status = jit_check_rank(&a[K], 3, m)) || (status = jit_check_dtype(&a[K], in_types, m)) ||
      (status = jit_check_same_sizes(&a[V], &a[K], m)) || (status = jit_check_same_dtype(&a[V], &a[K], m)) ||
      (status = jit_check_dtype(&a[K_OUT], out_types, m)) || (status = jit_check_same_dtype(&a[V_OUT], &a[K_OUT], m)) ||
      (status = jit_check_same_sizes(&a[V_OUT], &a[K_OUT], m)))
    return status;
  for (int i = K_SCALE; i <= V_SCALE; i++)
    if ((status = jit_check_dtype(&a[i], scale_types, m)) || (status = jit_check_one(&a[i], m)))
      return status;
  return (status = jit_check_dtype(&a[LOC], loc_types, m)) ? status : jit_check_rank(&a[LOC], 1, m);
}

static bool is_whole(const struct downcast_fp8 *d) {
  uintptr_t all = (uintptr_t)d->k | (uintptr_t)d->v | (uintptr_t)d->k_out | (uintptr_t)d->v_out;
  return d->row % PIECE == 0 && all % 16 == 0 && d->tokens * (d->row / PIECE) <= INT_MAX;
}

static sgl_jit_status check(const sgl_jit_tensor *const t[], const int64_t numbers[], struct jit_call *call,
                            struct jit_message m) {
  const struct jit_argument a[TENSORS] = {{"k", t[K]},
                                          {"v", t[V]},
                                          {"k_out", t[K_OUT]},
                                          {"v_out", t[V_OUT]},
                                          {"k_scale", t[K_SCALE]},
                                          {"v_scale", t[V_SCALE]},
                                          {"loc", t[LOC]}};
  sgl_jit_status status;
  if ((status = jit_check_tensors(a, TENSORS, m)) || (status = check_kinds(a, m)))
    return status;
  int64_t tokens = t[K]->sizes[0], row = tokens ? jit_elements(t[K]) / tokens : 0, slots = 0;
  if (t[LOC]->sizes[0] < tokens)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                    "loc must have an element for each of the %" PRId64 " tokens of k, got %" PRId64, tokens,
                    t[LOC]->sizes[0]);
  if (row > 0) {
    slots = jit_elements(t[K_OUT]) / row;
    if (jit_elements(t[K_OUT]) % row)
      return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                      "k_out must have whole slots of %" PRId64 " elements (k.size(1) * k.size(2)), got %" PRId64
                      " elements",
                      row, jit_elements(t[K_OUT]));
  }
  for (int i = 0; i < TENSORS; i++)
    if ((status = jit_check_contiguous(&a[i], m)))
      return status;
  if ((status = jit_check_places(a, TENSORS, m)))
    return status;
  for (int out = K_OUT; out <= V_OUT; out++)
    for (int other = K; other < TENSORS; other++)
      if (other != out && !(out == K_OUT && other == V_OUT) && (status = jit_check_apart(&a[out], &a[other], m)))
        return status;
  struct downcast_fp8 d = {.k = t[K]->data,
                           .v = t[V]->data,
                           .k_out = t[K_OUT]->data,
                           .v_out = t[V_OUT]->data,
                           .k_scale = t[K_SCALE]->data,
                           .v_scale = t[V_SCALE]->data,
                           .loc = t[LOC]->data,
                           .tokens = tokens,
                           .row = row,
                           .slots = slots,
                           .mult = numbers[MULT],
                           .offset = numbers[OFFSET]};
  *call = (struct jit_call){.cuda = t[K]->device_type == SGL_JIT_DEVICE_CUDA,
                            .device = t[K]->device_index,
                            .empty = tokens == 0 || row == 0,
                            .dtype = t[K]->dtype,
                            .whole = is_whole(&d),
                            .a.downcast = d};
  return SGL_JIT_OK;
}

/* The divisions as the kernel makes them, each rounded to the type of k. */
static void cast_row(sgl_jit_dtype dtype, const void *from, int64_t first, int64_t count, float scale, uint8_t *to) {
  double inverse = jit_rounded(dtype, (double)(1.0F / (float)jit_rounded(dtype, (double)scale)));
  for (int64_t i = 0; i < count; i++)
    to[i] = jit_to_e4m3(jit_rounded(dtype, jit_number(dtype, from, first + i) * inverse));
}

static sgl_jit_status reference(const struct jit_call *call, struct jit_message m) {
  const struct downcast_fp8 *d = &call->a.downcast;
  for (int64_t t = 0; t < d->tokens; t++) {
    int64_t slot = -1;
    bool fits = !__builtin_mul_overflow(d->loc[t], d->mult, &slot) && !__builtin_add_overflow(slot, d->offset, &slot);
    if (!fits || slot < 0 || slot >= d->slots)
      return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                      "loc[%" PRId64 "] * mult + offset must be one of the %" PRId64 " slots of k_out; loc is %" PRId64,
                      t, (int64_t)d->slots, (int64_t)d->loc[t]);
  }
  for (int64_t t = 0; t < d->tokens; t++) {
    int64_t to = (d->loc[t] * d->mult + d->offset) * d->row;
    cast_row(call->dtype, d->k, t * d->row, d->row, *d->k_scale, (uint8_t *)d->k_out + to);
    cast_row(call->dtype, d->v, t * d->row, d->row, *d->v_scale, (uint8_t *)d->v_out + to);
  }
  return SGL_JIT_OK;
}

static int steps(const struct jit_call *call, struct jit_step step[]) {
  const struct downcast_fp8 *d = &call->a.downcast;
  int64_t work = call->whole ? d->tokens * (d->row / PIECE) : d->tokens * d->row;
  int64_t blocks = (work + THREADS - 1) / THREADS;
  step[0] = (struct jit_step){.entry = (call->whole ? 0 : 2) + (call->dtype == SGL_JIT_DTYPE_FLOAT16),
                              .blocks = blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS};
  return 1;
}

static const struct jit_native downcast = {JIT_DOWNCAST_FP8, check, reference, steps};

sgl_jit_status sgl_jit_downcast_fp8(const sgl_jit_tensor *k, const sgl_jit_tensor *v, const sgl_jit_tensor *k_out,
                                    const sgl_jit_tensor *v_out, const sgl_jit_tensor *k_scale,
                                    const sgl_jit_tensor *v_scale, const sgl_jit_tensor *loc, int64_t mult,
                                    int64_t offset, void *stream, char *message, size_t message_size) {
  const sgl_jit_tensor *const t[] = {k, v, k_out, v_out, k_scale, v_scale, loc};
  return jit_native_run(&downcast, false, t, (const int64_t[]){mult, offset}, stream, message, message_size);
}

sgl_jit_status sgl_jit_reference_downcast_fp8(const sgl_jit_tensor *k, const sgl_jit_tensor *v,
                                              const sgl_jit_tensor *k_out, const sgl_jit_tensor *v_out,
                                              const sgl_jit_tensor *k_scale, const sgl_jit_tensor *v_scale,
                                              const sgl_jit_tensor *loc, int64_t mult, int64_t offset, char *message,
                                              size_t message_size) {
  const sgl_jit_tensor *const t[] = {k, v, k_out, v_out, k_scale, v_scale, loc};
  return jit_native_run(&downcast, true, t, (const int64_t[]){mult, offset}, NULL, message, message_size);
}
