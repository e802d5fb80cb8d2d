/* bmm_fp8 on a CUDA device: one call of cublasLtMatmul, with what cuBLASLt has to be asked remembered for each shape.
 *
 * cuBLASLt is column-major, and output is row-major: so output^T = B^T A^T is computed. Its A is our B, of which
 * column-major is what it is, transposed; its B is our A, which row-major is A^T in its eyes. That is the "TN" form,
 * the only one of its FP8 kernels before compute capability 10. */
#include "internal.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Numbers from library_types.h, cublas_api.h and cublasLt.h (CUDA 12 and 13 agree), which the build does not need. */
enum { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14, CUDA_R_8F_E4M3 = 28, CUDA_R_8F_E5M2 = 29 };
enum { CUBLAS_COMPUTE_32F = 68, CUBLAS_OP_T = 1 };
enum {
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,          /* int32_t */
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6, /* int64_t, in elements */
  CUBLASLT_MATMUL_DESC_TRANSA = 3,                 /* int32_t; TRANSB is CUBLAS_OP_N unless set */
  CUBLASLT_MATMUL_DESC_A_SCALE_POINTER = 17,
  CUBLASLT_MATMUL_DESC_B_SCALE_POINTER = 18,
  CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25,           /* int8_t */
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,   /* uint64_t */
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5, /* uint32_t, 256 unless set; B, C and D follow */
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
};

enum {
  BUCKETS = 1024,
  MOST_PLANS = 4096,    /* remembered: about 2 MB. Further shapes ask cuBLASLt at every call */
  BEST_ALIGNMENT = 256, /* more is not asked for */
  SCALE_ALIGNMENT = 16, /* see copy_scales */
  SCALES_SIZE = 256     /* what the copies take of the workspace, whose rest keeps its alignment */
};

/* All that the choice of an algorithm depends on. */
struct key {
  size_t workspace_size;
  int device, batch, m, n, k, alignment;
  int a_type, b_type, output_type;
  bool odd_scales; /* one does not start at a multiple of SCALE_ALIGNMENT */
};

/* Immutable once it is in the table. */
struct plan {
  struct key key;
  const struct jit_blas *blas;
  cublasLtHandle_t handle;
  struct jit_blas_layout a, b, output; /* as cuBLASLt names them: a is of our B */
  struct jit_blas_algorithm algorithm;
  bool copies_scales; /* cuBLASLt refuses them where they are; nothing above counts then */
  struct plan *next;
};

/* A list for each hash value. Plans are put in front, whole, and never removed. */
static _Atomic(struct plan *) buckets[BUCKETS];
static int plan_count;                                   /* under the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for what is written here, and for new handles */

static int alignment_of(const struct jit_bmm *bmm) {
  uintptr_t all = (uintptr_t)bmm->a | (uintptr_t)bmm->b | (uintptr_t)bmm->output | BEST_ALIGNMENT;
  return (int)(all & -all);
}

static inline struct key key_of(const struct jit_bmm *bmm) {
  return (struct key){.workspace_size = bmm->workspace_size,
                      .device = bmm->device,
                      .batch = bmm->batch,
                      .m = bmm->m,
                      .n = bmm->n,
                      .k = bmm->k,
                      .alignment = alignment_of(bmm),
                      .a_type = bmm->a_type,
                      .b_type = bmm->b_type,
                      .output_type = bmm->output_type,
                      .odd_scales = ((uintptr_t)bmm->a_scale | (uintptr_t)bmm->b_scale) % SCALE_ALIGNMENT != 0};
}

static inline bool same_key(const struct key *a, const struct key *b) {
  return a->m == b->m && a->n == b->n && a->k == b->k && a->batch == b->batch && a->device == b->device &&
         a->alignment == b->alignment && a->a_type == b->a_type && a->b_type == b->b_type &&
         a->output_type == b->output_type && a->workspace_size == b->workspace_size && a->odd_scales == b->odd_scales;
}

static inline _Atomic(struct plan *) *bucket_of(const struct key *key) {
  uint64_t hash = (uint64_t)key->m * 0x9e3779b97f4a7c15u + (uint64_t)key->n * 0xc2b2ae3d27d4eb4fu +
                  (uint64_t)key->k * 0x165667b19e3779f9u + (uint64_t)key->batch * 0x27d4eb2f165667c5u +
                  (uint64_t)(key->device * 4096 + key->alignment * 8 + key->a_type);
  return &buckets[(hash ^ hash >> 32) % BUCKETS];
}

static inline const struct plan *find(const struct key *key) {
  const struct plan *plan = atomic_load_explicit(bucket_of(key), memory_order_acquire);
  while (plan && !same_key(&plan->key, key))
    plan = plan->next;
  return plan;
}

/* For the process's life, unless another thread was faster or there are enough of them. */
static void keep(const struct plan *plan) {
  struct plan *copy = malloc(sizeof *copy);
  pthread_mutex_lock(&lock);
  if (copy && plan_count < MOST_PLANS && !find(&plan->key)) {
    _Atomic(struct plan *) *bucket = bucket_of(&plan->key);
    *copy = *plan;
    copy->next = atomic_load_explicit(bucket, memory_order_relaxed);
    atomic_store_explicit(bucket, copy, memory_order_release);
    plan_count++;
    copy = NULL;
  }
  pthread_mutex_unlock(&lock);
  free(copy);
}

/* --- what cuBLASLt is told --- */

static int cuda_type(sgl_jit_dtype dtype) {
  return dtype == SGL_JIT_DTYPE_FLOAT8_E4M3FN ? CUDA_R_8F_E4M3
         : dtype == SGL_JIT_DTYPE_FLOAT8_E5M2 ? CUDA_R_8F_E5M2
         : dtype == SGL_JIT_DTYPE_BFLOAT16    ? CUDA_R_16BF
                                              : CUDA_R_16F;
}

/* In the caller's memory, for one call: the scales are part of it. */
static inline cublasStatus_t describe_product(const struct jit_blas *blas, const struct jit_bmm *bmm,
                                              struct jit_blas_desc *desc) {
  const int32_t transposed = CUBLAS_OP_T;
  const int8_t fast = 1;
  const void *scale_a = bmm->b_scale, *scale_b = bmm->a_scale;
  cublasStatus_t error = blas->cublasLtMatmulDescInit_internal(desc, sizeof *desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  if (!error)
    error = blas->cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
  if (!error)
    error = blas->cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
  if (!error)
    error = blas->cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale_a, sizeof scale_a);
  if (!error)
    error = blas->cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &scale_b, sizeof scale_b);
  return error;
}

static cublasStatus_t describe_matrix(const struct jit_blas *blas, sgl_jit_dtype type, int rows, int columns, int batch,
                                      struct jit_blas_layout *layout) {
  const int32_t count = batch;
  const int64_t stride = (int64_t)rows * columns;
  cublasStatus_t error = blas->cublasLtMatrixLayoutInit_internal(layout, sizeof *layout, cuda_type(type),
                                                                 (uint64_t)rows, (uint64_t)columns, rows);
  if (!error)
    error = blas->cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
  if (!error)
    error = blas->cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                   sizeof stride);
  return error;
}

static cublasStatus_t choose(const struct jit_bmm *bmm, struct plan *plan) {
  const struct jit_blas *blas = plan->blas;
  const uint64_t workspace_size = bmm->workspace_size;
  const uint32_t alignment = (uint32_t)plan->key.alignment;
  struct jit_blas_desc desc;
  struct jit_blas_preference preference;
  struct jit_blas_result result;
  int count = 0;
  cublasStatus_t error = describe_product(blas, bmm, &desc);
  if (!error)
    error = describe_matrix(blas, bmm->b_type, bmm->k, bmm->n, bmm->batch, &plan->a);
  if (!error)
    error = describe_matrix(blas, bmm->a_type, bmm->k, bmm->m, bmm->batch, &plan->b);
  if (!error)
    error = describe_matrix(blas, bmm->output_type, bmm->n, bmm->m, bmm->batch, &plan->output);
  if (!error)
    error = blas->cublasLtMatmulPreferenceInit_internal(&preference, sizeof preference);
  if (!error)
    error = blas->cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                       &workspace_size, sizeof workspace_size);
  for (int i = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES; i <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES && !error;
       i++)
    error = blas->cublasLtMatmulPreferenceSetAttribute(&preference, i, &alignment, sizeof alignment);
  if (!error)
    error = blas->cublasLtMatmulAlgoGetHeuristic(plan->handle, &desc, &plan->a, &plan->b, &plan->output, &plan->output,
                                                 &preference, 1, &result, &count);
  if (!error && count < 1)
    error = JIT_BLAS_NOT_SUPPORTED;
  if (!error)
    error = result.state;
  if (!error)
    plan->algorithm = result.algorithm;
  return error;
}

static inline cublasStatus_t multiply(const struct plan *plan, const struct jit_bmm *bmm, CUstream stream) {
  const float one = 1, zero = 0;
  struct jit_blas_desc desc;
  cublasStatus_t error = describe_product(plan->blas, bmm, &desc);
  return error ? error
               : plan->blas->cublasLtMatmul(plan->handle, &desc, &one, bmm->b, &plan->a, bmm->a, &plan->b, &zero,
                                            bmm->output, &plan->output, bmm->output, &plan->output, &plan->algorithm,
                                            bmm->workspace, bmm->workspace_size, stream);
}

/* --- errors --- */

static const char refuses[] = "has chosen an algorithm and refuses it";

/* what: "has no algorithm", or `refuses`. */
static __attribute__((cold)) sgl_jit_status refused(const struct jit_blas *blas, const struct jit_bmm *bmm,
                                                    const struct jit_place *place, const char *what,
                                                    cublasStatus_t error, struct jit_message m) {
  enum { DELETED_WORKSPACE = 32 << 20 };
  struct jit_blas_facts facts;
  jit_blas_facts(blas, &facts);
  if (error == JIT_BLAS_NOT_SUPPORTED || error == JIT_BLAS_ARCH_MISMATCH || error == JIT_BLAS_INVALID_VALUE)
    return jit_fail(
        m, SGL_JIT_ERROR_UNSUPPORTED,
        "cuBLASLt %s %s (%s) for batch %d, m %d, n %d, k %d, %s x %s to %s, %zu bytes of workspace, on cuda:%d "
        "(compute capability %d.%d)%s",
        facts.version, what, jit_blas_error(blas, error), bmm->batch, bmm->m, bmm->n, bmm->k,
        jit_dtype_name(bmm->a_type), jit_dtype_name(bmm->b_type), jit_dtype_name(bmm->output_type), bmm->workspace_size,
        bmm->device, place->device->major, place->device->minor,
        bmm->workspace_size < DELETED_WORKSPACE - SCALES_SIZE ? "; the deleted kernel had 32 MiB of workspace" : "");
  return jit_fail(m, error == JIT_BLAS_ALLOC_FAILED ? SGL_JIT_ERROR_OUT_OF_MEMORY : SGL_JIT_ERROR_LAUNCH,
                  "cuBLASLt %s refused the product, or an earlier error surfaced: %s", facts.version,
                  jit_blas_error(blas, error));
}

/* Asked after an error only. */
static bool is_capturing(const struct jit_driver *driver, CUstream stream) {
  int status = 0;
  CUresult error = driver->cuStreamIsCapturing(stream, &status);
  return error ? jit_is_capture_error(error) : status != 0;
}

/* Errors that a capture can be the reason of. */
static bool may_be_capture(cublasStatus_t error) {
  return error == JIT_BLAS_NOT_INITIALIZED || error == JIT_BLAS_ALLOC_FAILED || error == JIT_BLAS_EXECUTION_FAILED ||
         error == JIT_BLAS_INTERNAL_ERROR;
}

/* --- scales --- */

/* A scale is one float and may be a slice of a buffer of many. cuBLASLt takes it wherever it is up to 12.8; 12.9 and
 * newer (seen with 13.1 on compute capability 9.0; sglang's #11612) refuse the product when it does not start at a
 * multiple of 16 bytes, which neither the documentation nor the heuristic says. Then it is copied to the front of the
 * workspace, in the order of the stream. */
static sgl_jit_status copy_scales(const struct jit_driver *driver, struct jit_bmm *bmm, CUstream stream,
                                  struct jit_message m) {
  static const char *const names[2] = {"A_scale", "B_scale"};
  const float **scales[2] = {&bmm->a_scale, &bmm->b_scale};
  for (int i = 0; i < 2; i++) {
    uintptr_t copy = (uintptr_t)bmm->workspace + (uintptr_t)i * SCALE_ALIGNMENT, scale = (uintptr_t)*scales[i];
    if (scale % SCALE_ALIGNMENT == 0)
      continue;
    if (bmm->workspace_size < SCALES_SIZE)
      return jit_fail(m, SGL_JIT_ERROR_UNSUPPORTED,
                      "%s starts %d bytes past a multiple of %d bytes, where this cuBLASLt does not take it, and the "
                      "workspace is too small for a copy; call .clone(), or pass a workspace of %d bytes or more",
                      names[i], (int)(scale % SCALE_ALIGNMENT), SCALE_ALIGNMENT, SCALES_SIZE);
    CUresult error = driver->cuMemcpyDtoDAsync(copy, scale, sizeof(float), stream);
    if (error)
      return jit_fail(m, SGL_JIT_ERROR_LAUNCH, "the driver refused to copy a scale, or an earlier error surfaced: %s",
                      jit_driver_error(driver, error).text);
    *scales[i] = (const float *)copy;
  }
  bmm->workspace_size -= SCALES_SIZE;
  bmm->workspace = bmm->workspace_size ? (char *)bmm->workspace + SCALES_SIZE : NULL;
  return SGL_JIT_OK;
}

static sgl_jit_status launch(const struct jit_place *place, const struct jit_bmm *bmm, CUstream stream,
                             struct jit_message m);

static __attribute__((noinline)) sgl_jit_status launch_copied(const struct jit_place *place, const struct jit_bmm *bmm,
                                                              CUstream stream, struct jit_message m) {
  struct jit_bmm copied = *bmm;
  sgl_jit_status status = copy_scales(place->driver, &copied, stream, m);
  return status == SGL_JIT_OK ? launch(place, &copied, stream, m) : status;
}

/* --- the first use of a shape --- */

/* A handle belongs to a device, and may be used by all threads at once. */
static cublasStatus_t find_handle(const struct jit_blas *blas, struct jit_device *device, cublasLtHandle_t *handle) {
  cublasStatus_t error = 0;
  pthread_mutex_lock(&lock);
  *handle = atomic_load_explicit(&device->blas, memory_order_relaxed);
  if (!*handle)
    error = blas->cublasLtCreate(handle);
  if (!error)
    atomic_store_explicit(&device->blas, *handle, memory_order_relaxed);
  pthread_mutex_unlock(&lock);
  return error;
}

/* OK also when the product has been refused for the scales alone, and nothing was launched. */
static sgl_jit_status first_use_relaxed(const struct jit_place *place, const struct jit_bmm *bmm, struct plan *plan,
                                        CUstream stream, struct jit_message m) {
  struct jit_blas_facts facts;
  cublasStatus_t error = find_handle(plan->blas, place->device, &plan->handle);
  bool started = !error, chosen;
  if (!error)
    error = choose(bmm, plan);
  chosen = !error;
  if (!error)
    error = multiply(plan, bmm, stream);
  plan->copies_scales = chosen && error == JIT_BLAS_NOT_SUPPORTED && plan->key.odd_scales;
  if (!error || plan->copies_scales)
    return SGL_JIT_OK;
  jit_blas_facts(plan->blas, &facts);
  if (may_be_capture(error) && is_capturing(place->driver, stream))
    return jit_fail(
        m, SGL_JIT_ERROR_CAPTURE,
        "the first use of this shape came during a stream capture, where cuBLASLt %s could not %s (%s); call "
        "it once with this shape before the capture",
        facts.version, started ? "load its code" : "start", jit_blas_error(plan->blas, error));
  if (started)
    return refused(plan->blas, bmm, place, chosen ? refuses : "has no algorithm", error, m);
  return jit_fail(m, error == JIT_BLAS_ALLOC_FAILED ? SGL_JIT_ERROR_OUT_OF_MEMORY : SGL_JIT_ERROR_NO_CUBLASLT,
                  "cuBLASLt %s (%s) does not start on cuda:%d (%s); the driver is for CUDA %d.%d, another cuBLASLt can "
                  "be named in SGL_KERNEL_JIT_CUBLASLT",
                  facts.version, facts.path, bmm->device, jit_blas_error(plan->blas, error),
                  place->driver->version / 1000, place->driver->version % 1000 / 10);
}

/* Threads that come with the same shape at once each ask cuBLASLt. The plan is for others to find only after it has
 * worked once, when the code that it needs is loaded. */
static __attribute__((noinline)) sgl_jit_status first_use(const struct jit_place *place, const struct jit_bmm *bmm,
                                                          const struct key *key, CUstream stream,
                                                          struct jit_message m) {
  struct plan plan = {.key = *key};
  sgl_jit_status status = jit_blas(place->driver->version, &plan.blas, m);
  if (status != SGL_JIT_OK)
    return status;
  /* To allocate and to load code is unsafe, in CUDA's terms, while a stream of the process captures in the strict
   * modes. */
  int mode = JIT_CUDA_CAPTURE_MODE_RELAXED;
  CUresult exchanged = place->driver->cuThreadExchangeStreamCaptureMode(&mode);
  status = first_use_relaxed(place, bmm, &plan, stream, m);
  if (!exchanged)
    place->driver->cuThreadExchangeStreamCaptureMode(&mode);
  if (status == SGL_JIT_OK)
    keep(&plan);
  return status == SGL_JIT_OK && plan.copies_scales ? launch_copied(place, bmm, stream, m) : status;
}

static sgl_jit_status launch(const struct jit_place *place, const struct jit_bmm *bmm, CUstream stream,
                             struct jit_message m) {
  struct key key = key_of(bmm);
  const struct plan *plan = find(&key);
  if (plan && plan->copies_scales)
    return launch_copied(place, bmm, stream, m);
  if (plan) {
    cublasStatus_t error = multiply(plan, bmm, stream);
    return error ? refused(plan->blas, bmm, place, refuses, error, m) : SGL_JIT_OK;
  }
  if (place->device->major * 10 + place->device->minor < JIT_FP8_CAPABILITY)
    return jit_fail(m, SGL_JIT_ERROR_UNSUPPORTED,
                    "cuda:%d has compute capability %d.%d, FP8 products need %d.%d or newer", bmm->device,
                    place->device->major, place->device->minor, JIT_FP8_CAPABILITY / 10, JIT_FP8_CAPABILITY % 10);
  return first_use(place, bmm, &key, stream, m);
}

sgl_jit_status jit_launch_bmm(const struct jit_bmm *bmm, void *stream, struct jit_message m) {
  struct jit_place place;
  sgl_jit_status status = jit_enter(bmm->device, &place, m);
  if (status != SGL_JIT_OK)
    return status;
  status = launch(&place, bmm, stream, m);
  jit_context_leave(place.driver, &place.context);
  return status;
}
