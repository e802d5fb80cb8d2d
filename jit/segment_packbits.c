/* segment_packbits: booleans to bits, eight in a byte, segment by segment. */
#include "native.h"
#include <inttypes.h>
#include <limits.h>

enum { X, INPUT_INDPTR, OUTPUT_INDPTR, Y, TENSORS };
enum { BATCH_SIZE };
enum { THREADS = 256, MOST_GROUPS = 1 << 14, MOST_OF_SEGMENT = 64 };

static const sgl_jit_dtype x_types[] = {SGL_JIT_DTYPE_BOOL, SGL_JIT_DTYPE_UINT8, SGL_JIT_DTYPE_OTHER};
static const sgl_jit_dtype indptr_types[] = {SGL_JIT_DTYPE_INT32, SGL_JIT_DTYPE_OTHER};
static const sgl_jit_dtype y_types[] = {SGL_JIT_DTYPE_UINT8, SGL_JIT_DTYPE_OTHER};

static sgl_jit_status check_indptr(const struct jit_argument *a, int64_t segments, struct jit_message m) {
  sgl_jit_status status;
  if ((status = jit_check_rank(a, 1, m)) || (status = jit_check_dtype(a, indptr_types, m)))
    return status;
  if (a->t->sizes[0] < segments + 1)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                    "%s must have at least batch_size + 1 elements, %" PRId64 ", got %" PRId64, a->name, segments + 1,
                    a->t->sizes[0]);
  return SGL_JIT_OK;
}

/* Blocks for a segment of the usual size, a thread for each 4 bytes of y. */
static int blocks_for(int64_t elements, int64_t segments) {
  int64_t blocks = elements / segments / (8 * 4 * THREADS) + 1;
  return blocks < MOST_OF_SEGMENT ? (int)blocks : MOST_OF_SEGMENT;
}

static sgl_jit_status check(const sgl_jit_tensor *const t[], const int64_t numbers[], struct jit_call *call,
                            struct jit_message m) {
  const struct jit_argument a[TENSORS] = {
      {"x", t[X]}, {"input_indptr", t[INPUT_INDPTR]}, {"output_indptr", t[OUTPUT_INDPTR]}, {"y", t[Y]}};
  int64_t segments = numbers[BATCH_SIZE];
  sgl_jit_status status;
  if (segments < 0 || segments > INT_MAX - 1)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "batch_size must be 0 to %d, got %" PRId64, INT_MAX - 1,
                    segments);
  if ((status = jit_check_tensors(a, TENSORS, m)) || (status = jit_check_dtype(&a[X], x_types, m)) ||
      (status = check_indptr(&a[INPUT_INDPTR], segments, m)) ||
      (status = check_indptr(&a[OUTPUT_INDPTR], segments, m)) || (status = jit_check_dtype(&a[Y], y_types, m)))
    return status;
  for (int i = 0; i < TENSORS; i++)
    if ((status = jit_check_contiguous(&a[i], m)))
      return status;
  if ((status = jit_check_places(a, TENSORS, m)))
    return status;
  for (int in = X; in < Y; in++)
    if ((status = jit_check_apart(&a[Y], &a[in], m)))
      return status;
  *call =
      (struct jit_call){.cuda = t[X]->device_type == SGL_JIT_DEVICE_CUDA,
                        .device = t[X]->device_index,
                        .empty = segments == 0,
                        .dtype = t[X]->dtype,
                        .a.packbits = {.x = t[X]->data,
                                       .y = t[Y]->data,
                                       .from = t[INPUT_INDPTR]->data,
                                       .to = t[OUTPUT_INDPTR]->data,
                                       .x_size = jit_elements(t[X]),
                                       .y_size = jit_elements(t[Y]),
                                       .segments = (int)segments,
                                       .blocks_of_segment = segments ? blocks_for(jit_elements(t[X]), segments) : 1}};
  return SGL_JIT_OK;
}

static sgl_jit_status check_segments(const struct packbits *p, struct jit_message m) {
  for (int s = 0; s < p->segments; s++) {
    int64_t first = p->from[s], end = p->from[s + 1], bytes = (end - first + 7) / 8;
    if (first < 0 || end < first || end > p->x_size)
      return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                      "input_indptr must rise from 0 to at most the %" PRId64 " elements of x, segment %d is %" PRId64
                      " to %" PRId64,
                      (int64_t)p->x_size, s, first, end);
    if (p->to[s] < 0 || p->to[s] + bytes > p->y_size)
      return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                      "y has %" PRId64 " elements, segment %d needs %" PRId64 " from %d on", (int64_t)p->y_size, s,
                      bytes, p->to[s]);
  }
  return SGL_JIT_OK;
}

static sgl_jit_status reference(const struct jit_call *call, struct jit_message m) {
  const struct packbits *p = &call->a.packbits;
  sgl_jit_status status = check_segments(p, m);
  for (int s = 0; status == SGL_JIT_OK && s < p->segments; s++) {
    int64_t count = p->from[s + 1] - p->from[s];
    const unsigned char *x = p->x + p->from[s];
    unsigned char *y = p->y + p->to[s];
    for (int64_t i = 0; i < count; i++) {
      if (i % 8 == 0)
        y[i / 8] = 0;
      y[i / 8] |= (unsigned char)((x[i] != 0) << i % 8);
    }
  }
  return status;
}

static int steps(const struct jit_call *call, struct jit_step step[]) {
  const struct packbits *p = &call->a.packbits;
  int64_t groups = p->segments < MOST_GROUPS ? p->segments : MOST_GROUPS;
  step[0] = (struct jit_step){.blocks = groups * p->blocks_of_segment};
  return 1;
}

static const struct jit_native packbits = {JIT_SEGMENT_PACKBITS, check, reference, steps};

sgl_jit_status sgl_jit_segment_packbits(const sgl_jit_tensor *x, const sgl_jit_tensor *input_indptr,
                                        const sgl_jit_tensor *output_indptr, const sgl_jit_tensor *y,
                                        int64_t batch_size, void *stream, char *message, size_t message_size) {
  const sgl_jit_tensor *const t[] = {x, input_indptr, output_indptr, y};
  return jit_native_run(&packbits, false, t, &batch_size, stream, message, message_size);
}

sgl_jit_status sgl_jit_reference_segment_packbits(const sgl_jit_tensor *x, const sgl_jit_tensor *input_indptr,
                                                  const sgl_jit_tensor *output_indptr, const sgl_jit_tensor *y,
                                                  int64_t batch_size, char *message, size_t message_size) {
  const sgl_jit_tensor *const t[] = {x, input_indptr, output_indptr, y};
  return jit_native_run(&packbits, true, t, &batch_size, NULL, message, message_size);
}
