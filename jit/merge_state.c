/* merge_state: two partial results of attention made one, by their logarithms. */
#include "native.h"
#include <math.h>

enum { V_A, S_A, V_B, S_B, V_MERGED, S_MERGED, TENSORS };
enum { THREADS = 256, WARP = 32, PIECE = 8, MOST_BLOCKS = 1 << 14 };

static const sgl_jit_dtype v_types[] = {SGL_JIT_DTYPE_BFLOAT16, SGL_JIT_DTYPE_FLOAT16, SGL_JIT_DTYPE_OTHER};
static const sgl_jit_dtype s_types[] = {SGL_JIT_DTYPE_FLOAT32, SGL_JIT_DTYPE_OTHER};

static sgl_jit_status check_kinds(const struct jit_argument a[], struct jit_message m) {
  sgl_jit_status status;
  for (int i = 0; i < TENSORS; i++)
    if ((status = jit_check_rank(&a[i], i % 2 == 0 ? 3 : 2, m)) ||
        (status = jit_check_dtype(&a[i], i % 2 == 0 ? v_types : s_types, m)) ||
        (i > S_A && (status = jit_check_same_sizes(&a[i], &a[i % 2], m))) ||
        (i > S_A && (status = jit_check_same_dtype(&a[i], &a[i % 2], m))) || (status = jit_check_contiguous(&a[i], m)))
      return status;
  const int64_t *v = a[V_A].t->sizes, *s = a[S_A].t->sizes;
  if (v[0] != s[0] || v[1] != s[1])
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "s_a must have the first two sizes of v_a, got other ones");
  return SGL_JIT_OK;
}

/* An output may be the very input. */
static sgl_jit_status check_overlap(const struct jit_argument a[], struct jit_message m) {
  sgl_jit_status status;
  for (int out = V_MERGED; out <= S_MERGED; out++)
    for (int in = V_A; in < out; in++)
      if ((in % 2 != out % 2 || a[in].t->data != a[out].t->data) && (status = jit_check_apart(&a[out], &a[in], m)))
        return status;
  return SGL_JIT_OK;
}

static sgl_jit_status check(const sgl_jit_tensor *const t[], const int64_t numbers[], struct jit_call *call,
                            struct jit_message m) {
  (void)numbers;
  const struct jit_argument a[TENSORS] = {{"v_a", t[V_A]}, {"s_a", t[S_A]},           {"v_b", t[V_B]},
                                          {"s_b", t[S_B]}, {"v_merged", t[V_MERGED]}, {"s_merged", t[S_MERGED]}};
  sgl_jit_status status;
  if ((status = jit_check_tensors(a, TENSORS, m)) || (status = check_kinds(a, m)) ||
      (status = jit_check_places(a, TENSORS, m)) || (status = check_overlap(a, m)))
    return status;
  struct merge_state s = {.v_a = t[V_A]->data,
                          .v_b = t[V_B]->data,
                          .s_a = t[S_A]->data,
                          .s_b = t[S_B]->data,
                          .v = t[V_MERGED]->data,
                          .s = t[S_MERGED]->data,
                          .rows = jit_elements(t[S_A]),
                          .width = t[V_A]->sizes[2],
                          .lanes = 1};
  uintptr_t all = (uintptr_t)s.v_a | (uintptr_t)s.v_b | (uintptr_t)s.v;
  bool whole = s.width % PIECE == 0 && all % 16 == 0;
  while (s.lanes < WARP && s.lanes * (whole ? PIECE : 1) < s.width)
    s.lanes *= 2;
  *call = (struct jit_call){.cuda = t[V_A]->device_type == SGL_JIT_DEVICE_CUDA,
                            .device = t[V_A]->device_index,
                            .empty = s.rows == 0,
                            .dtype = t[V_A]->dtype,
                            .whole = whole,
                            .a.merge = s};
  return SGL_JIT_OK;
}

static sgl_jit_status reference(const struct jit_call *call, struct jit_message m) {
  (void)m;
  const struct merge_state *p = &call->a.merge;
  for (int64_t row = 0; row < p->rows; row++) {
    double s_a = (double)p->s_a[row], s_b = (double)p->s_b[row], most = fmax(s_a, s_b);
    double a = exp2(s_a - most), b = exp2(s_b - most), sum = a + b;
    for (int64_t i = row * p->width; i < (row + 1) * p->width; i++)
      jit_put_number(call->dtype, p->v, i,
                     a / sum * jit_number(call->dtype, p->v_a, i) + b / sum * jit_number(call->dtype, p->v_b, i));
    p->s[row] = (float)(log2(sum) + most);
  }
  return SGL_JIT_OK;
}

static int steps(const struct jit_call *call, struct jit_step step[]) {
  const struct merge_state *p = &call->a.merge;
  int64_t rows = THREADS / p->lanes, blocks = (p->rows + rows - 1) / rows;
  step[0] = (struct jit_step){.entry = (call->whole ? 0 : 2) + (call->dtype == SGL_JIT_DTYPE_FLOAT16),
                              .blocks = blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS};
  return 1;
}

static const struct jit_native merge = {JIT_MERGE_STATE, check, reference, steps};

sgl_jit_status sgl_jit_merge_state(const sgl_jit_tensor *v_a, const sgl_jit_tensor *s_a, const sgl_jit_tensor *v_b,
                                   const sgl_jit_tensor *s_b, const sgl_jit_tensor *v_merged,
                                   const sgl_jit_tensor *s_merged, void *stream, char *message, size_t message_size) {
  const sgl_jit_tensor *const t[] = {v_a, s_a, v_b, s_b, v_merged, s_merged};
  return jit_native_run(&merge, false, t, NULL, stream, message, message_size);
}

sgl_jit_status sgl_jit_reference_merge_state(const sgl_jit_tensor *v_a, const sgl_jit_tensor *s_a,
                                             const sgl_jit_tensor *v_b, const sgl_jit_tensor *s_b,
                                             const sgl_jit_tensor *v_merged, const sgl_jit_tensor *s_merged,
                                             char *message, size_t message_size) {
  const sgl_jit_tensor *const t[] = {v_a, s_a, v_b, s_b, v_merged, s_merged};
  return jit_native_run(&merge, true, t, NULL, NULL, message, message_size);
}
