/* hadamard_transform: the fast Walsh-Hadamard transform of each row. */
#include "native.h"
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { X, OUTPUT, TENSORS };
enum {
  MOST_COLUMNS = 1 << 15,
  LEAST_LOG = 3,
  BLOCK_ELEMENTS = 512,
  MOST_THREADS = 1024,
  FEW_THREADS = 256,
  MANY_BLOCKS = 132
};

static const sgl_jit_dtype types[] = {SGL_JIT_DTYPE_FLOAT32, SGL_JIT_DTYPE_BFLOAT16, SGL_JIT_DTYPE_FLOAT16,
                                      SGL_JIT_DTYPE_OTHER};

/* How far apart the rows are, when all dimensions but the last are one row number; false when they are not. */
static bool find_pitch(const sgl_jit_tensor *t, int64_t *pitch) {
  int64_t next = -1;
  *pitch = t->sizes[t->ndim - 1];
  for (int d = t->ndim - 2; d >= 0; d--) {
    if (t->sizes[d] == 1)
      continue;
    if (next < 0)
      *pitch = next = t->strides[d];
    if (t->strides[d] != next)
      return false;
    next *= t->sizes[d];
  }
  return t->sizes[t->ndim - 1] == 1 || t->strides[t->ndim - 1] == 1;
}

static sgl_jit_status check(const sgl_jit_tensor *const t[], const int64_t numbers[], struct jit_call *call,
                            struct jit_message m) {
  const struct jit_argument a[TENSORS] = {{"x", t[X]}, {"output", t[OUTPUT]}};
  double scale;
  int64_t pitch = 0;
  sgl_jit_status status;
  if ((status = jit_check_tensors(a, TENSORS, m)) || (status = jit_check_dtype(&a[X], types, m)) ||
      (status = jit_check_same_dtype(&a[OUTPUT], &a[X], m)) || (status = jit_check_same_sizes(&a[OUTPUT], &a[X], m)))
    return status;
  if (t[X]->ndim < 1)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "x must have at least 1 dimension, got 0");
  int64_t columns = t[X]->sizes[t[X]->ndim - 1], all = jit_elements(t[X]);
  if (columns > MOST_COLUMNS)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "the last size of x must be at most %d, got %" PRId64,
                    MOST_COLUMNS, columns);
  if (all > 0 && !find_pitch(t[X], &pitch))
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                    "x must be rows that lie in one piece each, equally far apart; call .contiguous()");
  if ((status = jit_check_contiguous(&a[OUTPUT], m)) || (status = jit_check_places(a, TENSORS, m)))
    return status;
  memcpy(&scale, &numbers[0], sizeof scale);
  struct hadamard h = {.input = t[X]->data,
                       .output = t[OUTPUT]->data,
                       .rows = columns ? all / columns : 0,
                       .pitch = pitch,
                       .columns = columns,
                       .scale = (float)scale,
                       .log_size = LEAST_LOG};
  while ((1 << h.log_size) < columns)
    h.log_size++;
  h.rows_of_block = BLOCK_ELEMENTS >> h.log_size > 1 ? BLOCK_ELEMENTS >> h.log_size : 1;
  h.is_whole =
      columns % 8 == 0 && (uintptr_t)h.input % 16 == 0 && pitch * (int64_t)jit_element_size(t[X]->dtype) % 16 == 0;
  *call = (struct jit_call){.cuda = t[X]->device_type == SGL_JIT_DEVICE_CUDA,
                            .device = t[X]->device_index,
                            .empty = all == 0,
                            .dtype = t[X]->dtype,
                            .a.hadamard = h};
  return SGL_JIT_OK;
}

static sgl_jit_status reference(const struct jit_call *call, struct jit_message m) {
  const struct hadamard *h = &call->a.hadamard;
  int size = 1 << h->log_size;
  double *e = malloc((size_t)size * sizeof *e);
  if (!e)
    return jit_fail(m, SGL_JIT_ERROR_OUT_OF_MEMORY, "out of memory");
  for (int64_t row = 0; row < h->rows; row++) {
    for (int i = 0; i < size; i++)
      e[i] = i < h->columns ? jit_number(call->dtype, h->input, row * h->pitch + i) : 0;
    for (int step = 1; step < size; step *= 2)
      for (int i = 0; i < size; i++)
        if (!(i & step)) {
          double low = e[i], high = e[i + step];
          e[i] = low + high;
          e[i + step] = low - high;
        }
    for (int i = 0; i < h->columns; i++)
      jit_put_number(call->dtype, h->output, row * h->columns + i, e[i] * (double)h->scale);
  }
  free(e);
  return SGL_JIT_OK;
}

static int steps(const struct jit_call *call, struct jit_step step[]) {
  const struct hadamard *h = &call->a.hadamard;
  int elements = (1 << h->log_size) * h->rows_of_block;
  int64_t blocks = (h->rows + h->rows_of_block - 1) / h->rows_of_block;
  /* Few blocks are done soonest with an eight of elements for each thread. When there are more than an H200 has
   * multiprocessors, several blocks of fewer threads beside each other wait less than one large block: 1024 rows of
   * 8192 columns took 46 us with 1024 threads and take 33 with 256; one row of 7168 took 6.5 and would take 8.6. */
  int threads = elements / 8 < MOST_THREADS ? elements / 8 : MOST_THREADS;
  if (blocks > MANY_BLOCKS && elements > 8 * FEW_THREADS)
    threads = elements / 32 > FEW_THREADS ? elements / 32 : FEW_THREADS;
  step[0] = (struct jit_step){.entry = call->dtype == SGL_JIT_DTYPE_FLOAT32    ? 0
                                       : call->dtype == SGL_JIT_DTYPE_BFLOAT16 ? 1
                                                                               : 2,
                              .blocks = blocks,
                              .threads = threads,
                              .shared = elements / 64 * 72 * (int)sizeof(float)};
  return 1;
}

static const struct jit_native hadamard = {JIT_HADAMARD, check, reference, steps};

static int64_t bits_of(double scale) {
  int64_t bits;
  memcpy(&bits, &scale, sizeof bits);
  return bits;
}

sgl_jit_status sgl_jit_hadamard_transform(const sgl_jit_tensor *x, const sgl_jit_tensor *output, double scale,
                                          void *stream, char *message, size_t message_size) {
  const sgl_jit_tensor *const t[] = {x, output};
  const int64_t number = bits_of(scale);
  return jit_native_run(&hadamard, false, t, &number, stream, message, message_size);
}

sgl_jit_status sgl_jit_reference_hadamard_transform(const sgl_jit_tensor *x, const sgl_jit_tensor *output, double scale,
                                                    char *message, size_t message_size) {
  const sgl_jit_tensor *const t[] = {x, output};
  const int64_t number = bits_of(scale);
  return jit_native_run(&hadamard, true, t, &number, NULL, message, message_size);
}
