/* The argument checks of bmm_fp8: what the ahead-of-time kernel asked (devices, ranks, sizes, dtypes), and what it left
 * to cuBLASLt or to luck: strides, scales, alignment, workspace, overlap. */
#include "internal.h"
#include <inttypes.h>
#include <limits.h>

enum {
  K_MULTIPLE = 16, /* a row of A and of B has 16-byte pieces: cublasLtMatmul, requirements of FP8 kernels ... */
  N_MULTIPLE = 8,  /* ... and so has a row of the 16-bit output */
  DATA_ALIGNMENT = 16,
  WORKSPACE_ALIGNMENT = 256, /* cublasLtMatmul */
};

#define FAIL(...) jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

enum { OUTPUT, A, B, A_SCALE, B_SCALE, TENSORS };
static const char *const names[TENSORS] = {"output", "A", "B", "A_scale", "B_scale"};

struct call {
  const sgl_jit_tensor *t[TENSORS];
  int64_t batch, m, n, k; /* known once the ranks are checked */
};

static sgl_jit_status check_present(const struct call *c, struct jit_message m) {
  for (int i = 0; i < TENSORS; i++) {
    if (!c->t[i])
      return FAIL("%s is NULL", names[i]);
    if (c->t[i]->ndim > 0 && (!c->t[i]->sizes || !c->t[i]->strides))
      return FAIL("%s has no sizes or no strides (NULL)", names[i]);
  }
  return SGL_JIT_OK;
}

static sgl_jit_status check_rank(struct call *c, struct jit_message m) {
  for (int i = OUTPUT; i <= B; i++)
    if (c->t[i]->ndim != 3)
      return FAIL("%s must have 3 dimensions, got %d", names[i], (int)c->t[i]->ndim);
  for (int i = A_SCALE; i <= B_SCALE; i++)
    for (int d = 0; d < c->t[i]->ndim; d++)
      if (c->t[i]->sizes[d] != 1)
        return FAIL("%s must have one element (a scale for the whole tensor), got size(%d) %" PRId64, names[i], d,
                    c->t[i]->sizes[d]);
  c->batch = c->t[A]->sizes[0];
  c->m = c->t[A]->sizes[1];
  c->k = c->t[A]->sizes[2];
  c->n = c->t[B]->sizes[2];
  return SGL_JIT_OK;
}

static bool is_fp8(sgl_jit_dtype dtype) {
  return dtype == SGL_JIT_DTYPE_FLOAT8_E4M3FN || dtype == SGL_JIT_DTYPE_FLOAT8_E5M2;
}

static sgl_jit_status check_dtypes(const struct call *c, struct jit_message m) {
  for (int i = A; i <= B; i++)
    if (!is_fp8(c->t[i]->dtype))
      return FAIL("%s must be float8_e4m3fn or float8_e5m2, got %s", names[i], jit_dtype_name(c->t[i]->dtype));
  if (c->t[A]->dtype == SGL_JIT_DTYPE_FLOAT8_E5M2 && c->t[B]->dtype == SGL_JIT_DTYPE_FLOAT8_E5M2)
    return FAIL("A and B must not both be float8_e5m2, cuBLASLt has no such product; make one of them float8_e4m3fn");
  if (c->t[OUTPUT]->dtype != SGL_JIT_DTYPE_BFLOAT16 && c->t[OUTPUT]->dtype != SGL_JIT_DTYPE_FLOAT16)
    return FAIL("output must be bfloat16 or float16, got %s", jit_dtype_name(c->t[OUTPUT]->dtype));
  for (int i = A_SCALE; i <= B_SCALE; i++)
    if (c->t[i]->dtype != SGL_JIT_DTYPE_FLOAT32)
      return FAIL("%s must be float32, got %s", names[i], jit_dtype_name(c->t[i]->dtype));
  return SGL_JIT_OK;
}

static sgl_jit_status check_sizes(const struct call *c, struct jit_message m) {
  const int64_t *b = c->t[B]->sizes, *output = c->t[OUTPUT]->sizes;
  if (b[0] != c->batch)
    return FAIL("A.size(0) and B.size(0) must be equal, got %" PRId64 " and %" PRId64, c->batch, b[0]);
  if (b[1] != c->k)
    return FAIL("A.size(2) and B.size(1) must be equal, got %" PRId64 " and %" PRId64, c->k, b[1]);
  if (c->batch < 0 || c->batch > INT_MAX || c->m < 0 || c->m > INT_MAX)
    return FAIL("A.size(0) and A.size(1) must be 0 to %d, got %" PRId64 " and %" PRId64, INT_MAX, c->batch, c->m);
  if (c->k <= 0 || c->k % K_MULTIPLE || c->k > INT_MAX)
    return FAIL("k (A.size(2)) must be a positive multiple of %d up to %d, got %" PRId64, K_MULTIPLE, INT_MAX, c->k);
  if (c->n <= 0 || c->n % N_MULTIPLE || c->n > INT_MAX)
    return FAIL("n (B.size(2)) must be a positive multiple of %d up to %d, got %" PRId64, N_MULTIPLE, INT_MAX, c->n);
  if (output[0] != c->batch || output[1] != c->m || output[2] != c->n)
    return FAIL("output must have the sizes (%" PRId64 ", %" PRId64 ", %" PRId64 "), got (%" PRId64 ", %" PRId64
                ", %" PRId64 ")",
                c->batch, c->m, c->n, output[0], output[1], output[2]);
  return SGL_JIT_OK;
}

static int64_t element_size(int tensor) {
  return tensor == OUTPUT ? 2 : tensor <= B ? 1 : 4;
}

/* False when they are more than memory can have. */
static bool bytes_of(const struct call *c, int tensor, int64_t *bytes) {
  *bytes = element_size(tensor);
  for (int d = 0; d < c->t[tensor]->ndim; d++)
    if (__builtin_mul_overflow(*bytes, c->t[tensor]->sizes[d], bytes))
      return false;
  return true;
}

/* The stride of a dimension of size 1, and every stride of an empty tensor, is free. */
static bool has_strides(const sgl_jit_tensor *t, const int64_t wanted[3]) {
  for (int d = 0; d < 3; d++)
    if (t->sizes[d] == 0)
      return true;
  for (int d = 0; d < 3; d++)
    if (t->sizes[d] != 1 && t->strides[d] != wanted[d])
      return false;
  return true;
}

static sgl_jit_status check_layout(const struct call *c, struct jit_message m) {
  const struct {
    int tensor;
    int64_t strides[3];
    const char *layout, *advice;
  } all[] = {
      {A, {c->m * c->k, c->k, 1}, "row-major", "call .contiguous()"},
      {B,
       {c->k * c->n, 1, c->k},
       "column-major in each batch",
       "pass weight.transpose(1, 2) of a contiguous [batch, n, k] weight"},
      {OUTPUT, {c->m * c->n, c->n, 1}, "row-major", "pass a contiguous tensor"},
  };
  for (int i = 0; i < 3; i++) {
    const int64_t *have = c->t[all[i].tensor]->strides, *want = all[i].strides;
    if (!has_strides(c->t[all[i].tensor], want))
      return FAIL("%s must be packed, %s (strides %" PRId64 ", %" PRId64 ", %" PRId64 "), got strides (%" PRId64
                  ", %" PRId64 ", %" PRId64 "); %s",
                  names[all[i].tensor], all[i].layout, want[0], want[1], want[2], have[0], have[1], have[2],
                  all[i].advice);
  }
  return SGL_JIT_OK;
}

static sgl_jit_status check_device(const struct call *c, struct jit_message m) {
  const sgl_jit_tensor *a = c->t[A];
  if (a->device_type != SGL_JIT_DEVICE_CUDA && a->device_type != SGL_JIT_DEVICE_CPU)
    return FAIL("A must be on a CUDA device, got %s", jit_device_text(a).text);
  for (int i = 0; i < TENSORS; i++)
    if (c->t[i]->device_type != a->device_type ||
        (a->device_type == SGL_JIT_DEVICE_CUDA && c->t[i]->device_index != a->device_index))
      return FAIL("%s must be on %s like A, got %s", names[i], jit_device_text(a).text, jit_device_text(c->t[i]).text);
  return SGL_JIT_OK;
}

static sgl_jit_status check_data(const struct call *c, uintptr_t workspace, size_t workspace_size,
                                 struct jit_message m) {
  int64_t bytes[TENSORS];
  for (int i = 0; i < TENSORS; i++) {
    if (!bytes_of(c, i, &bytes[i]))
      return FAIL("%s is larger than any memory", names[i]);
    int alignment = i <= B ? DATA_ALIGNMENT : (int)element_size(i);
    uintptr_t address = (uintptr_t)c->t[i]->data;
    if (bytes[i] > 0 && !address)
      return FAIL("%s has no data (NULL)", names[i]);
    if (bytes[i] > 0 && address % (unsigned)alignment)
      return FAIL("%s must start at a multiple of %d bytes, got one that starts %d bytes past; %s", names[i], alignment,
                  (int)(address % (unsigned)alignment),
                  i == OUTPUT ? "pass a tensor that is not such a slice" : "call .clone()");
  }
  if (workspace_size && !workspace)
    return FAIL("workspace is NULL, but workspace_size is %zu", workspace_size);
  if (workspace_size && workspace % WORKSPACE_ALIGNMENT)
    return FAIL("workspace must start at a multiple of %d bytes, got one that starts %d bytes past; pass a tensor that "
                "is not a slice",
                WORKSPACE_ALIGNMENT, (int)(workspace % WORKSPACE_ALIGNMENT));
  uintptr_t output = (uintptr_t)c->t[OUTPUT]->data, output_size = (uintptr_t)bytes[OUTPUT];
  for (int i = A; i < TENSORS; i++) {
    uintptr_t data = (uintptr_t)c->t[i]->data, size = (uintptr_t)bytes[i];
    if (jit_overlap(output, output_size, data, size))
      return FAIL("output must not overlap %s", names[i]);
    if (jit_overlap(workspace, workspace_size, data, size))
      return FAIL("workspace must not overlap %s", names[i]);
  }
  if (jit_overlap(workspace, workspace_size, output, output_size))
    return FAIL("workspace must not overlap output");
  return SGL_JIT_OK;
}

sgl_jit_status jit_check_bmm(const sgl_jit_tensor *output, const sgl_jit_tensor *a, const sgl_jit_tensor *b,
                             const sgl_jit_tensor *a_scale, const sgl_jit_tensor *b_scale, void *workspace,
                             size_t workspace_size, struct jit_bmm *bmm, struct jit_message m) {
  struct call c = {.t = {output, a, b, a_scale, b_scale}};
  sgl_jit_status status;
  if ((status = check_present(&c, m)) || (status = check_rank(&c, m)) || (status = check_dtypes(&c, m)) ||
      (status = check_sizes(&c, m)) || (status = check_layout(&c, m)) || (status = check_device(&c, m)))
    return status;
  bool cuda = a->device_type == SGL_JIT_DEVICE_CUDA;
  if (!cuda)
    workspace_size = 0;
  if ((status = check_data(&c, workspace_size ? (uintptr_t)workspace : 0, workspace_size, m)))
    return status;
  *bmm = (struct jit_bmm){.output = output->data,
                          .workspace = workspace_size ? workspace : NULL,
                          .a = a->data,
                          .b = b->data,
                          .a_scale = a_scale->data,
                          .b_scale = b_scale->data,
                          .workspace_size = workspace_size,
                          .batch = (int)c.batch,
                          .m = (int)c.m,
                          .n = (int)c.n,
                          .k = (int)c.k,
                          .a_type = a->dtype,
                          .b_type = b->dtype,
                          .output_type = output->dtype,
                          .cuda = cuda,
                          .device = a->device_index};
  return SGL_JIT_OK;
}
