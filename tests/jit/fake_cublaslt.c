/* A stand-in for cuBLASLt on the fake driver: device memory is host memory. It knows one algorithm, for FP8 products of
 * the "TN" form, and is as strict as the documentation of cublasLtMatmul: types, leading dimensions, batches,
 * alignment, scales, workspace, the device of the handle. What is wrong is told in `fault`. It computes column-major,
 * in float. */
#include "fakes.h"
#include "tests/small_floats.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT struct fake_cublaslt fake_cublaslt = {.version = 130100, .needs_alignment = 16};

enum { OK, NOT_INITIALIZED = 1, ALLOC_FAILED = 3, INVALID_VALUE = 7, INTERNAL_ERROR = 14, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_16F = 2, R_16BF = 14, E4M3 = 28, E5M2 = 29, COMPUTE_32F = 68 };

struct handle {
  int device; /* the fake driver's */
};
/* Each begins with a mark, so that one in the place of another shows; the mark of the last 8 bytes, that all is there.
 */
enum { DESC = 0x44, LAYOUT = 0x4c, PREFERENCE = 0x50, ALGORITHM = 0x41 };
struct desc {
  uint64_t mark;
  int compute, scale_type, trans_a, trans_b;
  const float *a_scale, *b_scale;
  int8_t fast;
  uint64_t rest[25];
  uint64_t end;
};
struct layout {
  uint64_t mark;
  int type, batch;
  uint64_t rows, columns;
  int64_t leading, stride;
  uint64_t rest;
  uint64_t end;
};
struct preference {
  uint64_t mark, workspace_size;
  uint32_t alignment[4];
  uint64_t rest[3], end;
};
struct algorithm {
  uint64_t mark, problem, workspace_size, alignment, rest[3], end;
};
struct result {
  struct algorithm algorithm;
  size_t workspace_size;
  int state;
  float waves;
  int reserved[4];
};
_Static_assert(sizeof(struct desc) == 256 && sizeof(struct layout) == 64 && sizeof(struct preference) == 64 &&
                   sizeof(struct algorithm) == 64,
               "as in cublasLt.h of CUDA 13");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for what is recorded */

static int fail(int status, const char *fault) {
  snprintf(fake_cublaslt.fault, sizeof fake_cublaslt.fault, "%s", fault);
  return status;
}
#define NEED(condition, status)                                                                                        \
  if (!(condition))                                                                                                    \
  return fail(status, #condition)

/* --- of the fake driver --- */

/* Found once: this library's own look-ups would show in the single-stepped call. */
static int (*context_device)(int *), (*exchange)(int *);

static void find_driver(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver && !exchange) {
    *(void **)&context_device = dlsym(driver, "cuCtxGetDevice");
    *(void **)&exchange = dlsym(driver, "cuThreadExchangeStreamCaptureMode");
  }
}

static int current_device(void) {
  int device = -1;
  return context_device && context_device(&device) == 0 ? device : -1;
}

static int capture_refuses(void) {
  int mode = 2;
  exchange(&mode);
  int current = mode;
  exchange(&mode);
  return fake_cublaslt.needs_relaxed == 2 || (fake_cublaslt.needs_relaxed && current != 2);
}

/* --- the library --- */

#define BLAS(name, ...)                                                                                                \
  EXPORT int name(__VA_ARGS__);                                                                                        \
  int name(__VA_ARGS__)

EXPORT size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void) {
  return (size_t)fake_cublaslt.version;
}

EXPORT const char *cublasLtGetStatusName(int status);
const char *cublasLtGetStatusName(int status) {
  return status == NOT_INITIALIZED  ? "CUBLAS_STATUS_NOT_INITIALIZED"
         : status == ALLOC_FAILED   ? "CUBLAS_STATUS_ALLOC_FAILED"
         : status == INVALID_VALUE  ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == INTERNAL_ERROR ? "CUBLAS_STATUS_INTERNAL_ERROR"
         : status == NOT_SUPPORTED  ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                    : "CUBLAS_STATUS_SOMETHING";
}

BLAS(cublasLtCreate, struct handle **handle) {
  find_driver();
  if (fake_cublaslt.create_error)
    return fake_cublaslt.create_error;
  NEED(current_device() >= 0, NOT_INITIALIZED);
  NEED(!capture_refuses(), INTERNAL_ERROR);
  *handle = malloc(sizeof **handle);
  (*handle)->device = current_device();
  fake_cublaslt.created++;
  return OK;
}

BLAS(cublasLtMatmulDescInit_internal, struct desc *desc, size_t size, int compute, int scale_type) {
  NEED(size >= sizeof *desc, ALLOC_FAILED);
  *desc = (struct desc){.mark = DESC, .compute = compute, .scale_type = scale_type, .end = DESC};
  return OK;
}

BLAS(cublasLtMatmulDescSetAttribute, struct desc *desc, int attribute, const void *value, size_t size) {
  NEED(desc->mark == DESC && desc->end == DESC, INVALID_VALUE);
  if (attribute == 3 && size == 4)
    desc->trans_a = *(const int *)value;
  else if (attribute == 4 && size == 4)
    desc->trans_b = *(const int *)value;
  else if (attribute == 17 && size == 8)
    desc->a_scale = *(const float *const *)value;
  else if (attribute == 18 && size == 8)
    desc->b_scale = *(const float *const *)value;
  else if (attribute == 25 && size == 1)
    desc->fast = *(const int8_t *)value;
  else
    return fail(INVALID_VALUE, "an attribute of a product");
  return OK;
}

BLAS(cublasLtMatrixLayoutInit_internal, struct layout *layout, size_t size, int type, uint64_t rows, uint64_t columns,
     int64_t leading) {
  NEED(size >= sizeof *layout, ALLOC_FAILED);
  *layout = (struct layout){LAYOUT, type, 1, rows, columns, leading, 0, 0, LAYOUT};
  return OK;
}

BLAS(cublasLtMatrixLayoutSetAttribute, struct layout *layout, int attribute, const void *value, size_t size) {
  NEED(layout->mark == LAYOUT && layout->end == LAYOUT, INVALID_VALUE);
  if (attribute == 5 && size == 4)
    memcpy(&layout->batch, value, size);
  else if (attribute == 6 && size == 8)
    memcpy(&layout->stride, value, size);
  else
    return fail(INVALID_VALUE, "an attribute of a matrix");
  return OK;
}

BLAS(cublasLtMatmulPreferenceInit_internal, struct preference *preference, size_t size) {
  NEED(size >= sizeof *preference, ALLOC_FAILED);
  *preference = (struct preference){.mark = PREFERENCE, .alignment = {256, 256, 256, 256}, .end = PREFERENCE};
  return OK;
}

BLAS(cublasLtMatmulPreferenceSetAttribute, struct preference *preference, int attribute, const void *value,
     size_t size) {
  NEED(preference->mark == PREFERENCE && preference->end == PREFERENCE, INVALID_VALUE);
  if (attribute == 1 && size == 8)
    memcpy(&preference->workspace_size, value, size);
  else if (attribute >= 5 && attribute <= 8 && size == 4)
    memcpy(&preference->alignment[attribute - 5], value, size);
  else
    return fail(INVALID_VALUE, "an attribute of a preference");
  return OK;
}

/* All that is wrong whatever the data. */
static int check(const struct desc *desc, const struct layout *a, const struct layout *b, const struct layout *c,
                 const struct layout *d) {
  const struct layout *all[] = {a, b, c, d};
  NEED(desc->mark == DESC && desc->end == DESC, INVALID_VALUE);
  for (int i = 0; i < 4; i++) {
    const struct layout *one = all[i];
    NEED(one->mark == LAYOUT && one->end == LAYOUT, INVALID_VALUE);
    NEED(one->rows > 0 && one->columns > 0 && one->leading >= (int64_t)one->rows, INVALID_VALUE);
    NEED(one->batch >= 1 && one->batch == a->batch, INVALID_VALUE);
    NEED(one->batch == 1 || one->stride >= one->leading * (int64_t)one->columns, INVALID_VALUE);
  }
  NEED(desc->compute == COMPUTE_32F && desc->scale_type == R_32F, NOT_SUPPORTED);
  NEED(desc->trans_a == 1 && desc->trans_b == 0, NOT_SUPPORTED);
  NEED(desc->fast == 1, NOT_SUPPORTED);
  NEED(desc->a_scale && desc->b_scale, INVALID_VALUE);
  NEED((a->type == E4M3 || a->type == E5M2) && (b->type == E4M3 || b->type == E5M2), NOT_SUPPORTED);
  NEED(a->type != E5M2 || b->type != E5M2, NOT_SUPPORTED);
  NEED((d->type == R_16BF || d->type == R_16F) && c->type == d->type, NOT_SUPPORTED);
  NEED(a->rows == b->rows && a->columns == d->rows && b->columns == d->columns, INVALID_VALUE);
  NEED(c->rows == d->rows && c->columns == d->columns && c->leading == d->leading, INVALID_VALUE);
  NEED(a->leading % 16 == 0 && b->leading % 16 == 0 && d->leading * 2 % 16 == 0, NOT_SUPPORTED);
  NEED(a->rows % 16 == 0 && d->rows * 2 % 16 == 0, NOT_SUPPORTED);
  return OK;
}

static uint64_t problem_of(const struct layout *a, const struct layout *b, const struct layout *d) {
  const struct layout *all[] = {a, b, d};
  uint64_t hash = 1;
  for (int i = 0; i < 3; i++)
    for (const unsigned char *p = (const unsigned char *)all[i], *end = p + sizeof *a; p < end; p++)
      hash = (hash ^ *p) * 0x100000001b3u;
  return hash;
}

BLAS(cublasLtMatmulAlgoGetHeuristic, struct handle *handle, const struct desc *desc, const struct layout *a,
     const struct layout *b, const struct layout *c, const struct layout *d, const struct preference *preference,
     int wanted, struct result *results, int *count) {
  *count = 0;
  if (fake_cublaslt.heuristic_error)
    return fake_cublaslt.heuristic_error;
  NEED(handle->device == current_device(), INVALID_VALUE);
  NEED(preference->mark == PREFERENCE && preference->end == PREFERENCE && wanted >= 1, INVALID_VALUE);
  int status = check(desc, a, b, c, d);
  if (status)
    return status;
  for (int i = 0; i < 4; i++)
    if (preference->alignment[i] < (uint32_t)fake_cublaslt.needs_alignment)
      return OK; /* and there is none */
  if (preference->workspace_size < (uint64_t)fake_cublaslt.needs_workspace)
    return OK;
  *results = (struct result){.algorithm = {ALGORITHM,
                                           problem_of(a, b, d),
                                           (uint64_t)fake_cublaslt.needs_workspace,
                                           preference->alignment[0],
                                           {0},
                                           ALGORITHM},
                             .workspace_size = (size_t)fake_cublaslt.needs_workspace,
                             .state = fake_cublaslt.state};
  *count = 1;
  fake_cublaslt.chosen++;
  return OK;
}

/* --- computing --- */

static float from_fp8(int type, unsigned bits) {
  return (float)small_value(type == E4M3 ? small_e4m3 : small_e5m2, bits);
}

/* Problems whose "code" is loaded. */
static _Atomic uint64_t loaded[8];

static int is_loaded(uint64_t problem) {
  for (int i = 0; i < 8; i++)
    if (loaded[i] == problem)
      return 1;
  return 0;
}

BLAS(cublasLtMatmul, struct handle *handle, const struct desc *desc, const float *alpha, const unsigned char *a,
     const struct layout *a_layout, const unsigned char *b, const struct layout *b_layout, const float *beta,
     const void *c, const struct layout *c_layout, uint16_t *d, const struct layout *d_layout,
     const struct algorithm *algorithm, void *workspace, size_t workspace_size, void *stream) {
  if (fake_cublaslt.matmul_error)
    return fake_cublaslt.matmul_error;
  NEED(handle->device == current_device(), INVALID_VALUE);
  int status = check(desc, a_layout, b_layout, c_layout, d_layout);
  if (status)
    return status;
  NEED(*alpha == 1 && *beta == 0 && c == d, INVALID_VALUE);
  NEED(algorithm->mark == ALGORITHM && algorithm->end == ALGORITHM, INVALID_VALUE);
  NEED(algorithm->problem == problem_of(a_layout, b_layout, d_layout), INVALID_VALUE);
  NEED(((uintptr_t)a | (uintptr_t)b | (uintptr_t)d) % algorithm->alignment == 0, INVALID_VALUE);
  NEED(workspace_size >= algorithm->workspace_size && (uintptr_t)workspace % 256 == 0, INVALID_VALUE);
  NEED(!workspace_size || workspace, INVALID_VALUE);
  /* Not documented; seen with cuBLASLt 13.1.0 on an H200. The heuristic does not look at it. */
  NEED(fake_cublaslt.takes_odd_scales || ((uintptr_t)desc->a_scale | (uintptr_t)desc->b_scale) % 16 == 0,
       NOT_SUPPORTED);
  if (!is_loaded(algorithm->problem)) {
    static _Atomic unsigned next;
    NEED(!capture_refuses(), INTERNAL_ERROR);
    loaded[next++ % 8] = algorithm->problem;
  }
  if (fake_cublaslt.idle)
    return OK;
  pthread_mutex_lock(&lock);
  fake_cublaslt.stream = stream;
  fake_cublaslt.device = handle->device - 10;
  fake_cublaslt.alignment = (int)algorithm->alignment;
  fake_cublaslt.workspace_size = workspace_size;
  pthread_mutex_unlock(&lock);
  fake_cublaslt.multiplied++;
  if (algorithm->workspace_size)
    memset(workspace, 0xee, algorithm->workspace_size);
  for (int64_t batch = 0; batch < d_layout->batch; batch++)
    for (int64_t i = 0; i < (int64_t)d_layout->rows; i++)
      for (int64_t j = 0; j < (int64_t)d_layout->columns; j++) {
        const unsigned char *column_a = a + batch * a_layout->stride + i * a_layout->leading;
        const unsigned char *column_b = b + batch * b_layout->stride + j * b_layout->leading;
        float sum = 0;
        for (int64_t k = 0; k < (int64_t)a_layout->rows; k++)
          sum += from_fp8(a_layout->type, column_a[k]) * from_fp8(b_layout->type, column_b[k]);
        d[batch * d_layout->stride + i + j * d_layout->leading] = small_nearest(
            d_layout->type == R_16F ? small_fp16 : small_bf16, (double)(sum * *desc->a_scale * *desc->b_scale));
      }
  return OK;
}
