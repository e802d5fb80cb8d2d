/* The argument checks of both operators: a table for each, in the order of the ahead-of-time kernels, with the checks
 * that those left out (output shape, weight's K, row pitch, device, alignment, overlap) put where their facts are
 * known. Whether the device is new enough is checked last, in launch.c, since only the driver knows. */
#include "internal.h"
#include <inttypes.h>
#include <stdio.h>

enum {
  MAX_TOKENS = 64,
  MAX_EXPERTS = 1024,
  MAX_WIDTH = 1 << 24, /* of K and of hd_out: keeps every offset that the kernels compute inside an int */
  K_MULTIPLE = 256,
};

struct argument {
  const char *name;
  const sgl_jit_tensor *t;
};

struct call {
  struct argument output, a, w;
  bool w_transposed;    /* w is [k, n], column-major */
  int64_t tokens, n, k; /* known once the ranks are checked */
};

/* Every call runs all checks: inlining them into the two lists below takes 19 ns off the 57 of a whole call. */
#define CHECK static inline __attribute__((always_inline)) sgl_jit_status

#define FAIL(...) jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

CHECK check_present(const struct call *c, struct jit_message m) {
  const struct argument all[] = {c->output, c->a, c->w};
  for (int i = 0; i < 3; i++) {
    if (!all[i].t)
      return FAIL("%s is NULL", all[i].name);
    if (all[i].t->ndim > 0 && (!all[i].t->sizes || !all[i].t->strides))
      return FAIL("%s has no sizes or no strides (NULL)", all[i].name);
  }
  return SGL_JIT_OK;
}

CHECK check_rank(struct call *c, struct jit_message m) {
  const struct argument all[] = {c->output, c->a, c->w};
  for (int i = 0; i < 3; i++)
    if (all[i].t->ndim != 2)
      return FAIL("%s must have 2 dimensions, got %d", all[i].name, (int)all[i].t->ndim);
  c->tokens = c->a.t->sizes[0];
  c->k = c->a.t->sizes[1];
  c->n = c->w.t->sizes[c->w_transposed ? 1 : 0];
  return SGL_JIT_OK;
}

CHECK check_same_k(const struct call *c, struct jit_message m) {
  int64_t w_k = c->w.t->sizes[c->w_transposed ? 0 : 1];
  if (w_k != c->k)
    return FAIL("%s.size(1) and %s.size(%d) must be equal, got %" PRId64 " and %" PRId64, c->a.name, c->w.name,
                c->w_transposed ? 0 : 1, c->k, w_k);
  return SGL_JIT_OK;
}

CHECK check_k(const struct call *c, struct jit_message m) {
  if (c->k <= 0 || c->k % K_MULTIPLE || c->k > MAX_WIDTH)
    return FAIL("%s (%s.size(1)) must be a positive multiple of %d up to %d, got %" PRId64,
                c->w_transposed ? "hd_in" : "hidden_dim", c->a.name, K_MULTIPLE, MAX_WIDTH, c->k);
  return SGL_JIT_OK;
}

CHECK check_experts(const struct call *c, struct jit_message m) {
  if (c->n <= 0 || c->n % 8 || c->n > MAX_EXPERTS)
    return FAIL("num_experts (%s.size(0)) must be a positive multiple of 8 up to %d, got %" PRId64, c->w.name,
                MAX_EXPERTS, c->n);
  return SGL_JIT_OK;
}

CHECK check_hd_out(const struct call *c, struct jit_message m) {
  if (c->n <= 0 || c->n % 16 || c->n > MAX_WIDTH)
    return FAIL("hd_out (%s.size(1)) must be a positive multiple of 16 up to %d, got %" PRId64, c->w.name, MAX_WIDTH,
                c->n);
  return SGL_JIT_OK;
}

CHECK check_tokens(const struct call *c, struct jit_message m) {
  if (c->tokens < 0 || c->tokens > MAX_TOKENS)
    return FAIL("num_tokens (%s.size(0)) must be 0 to %d, got %" PRId64, c->a.name, MAX_TOKENS, c->tokens);
  return SGL_JIT_OK;
}

CHECK check_output_shape(const struct call *c, struct jit_message m) {
  if (c->output.t->sizes[0] != c->tokens || c->output.t->sizes[1] != c->n)
    return FAIL("%s must have the sizes (%" PRId64 ", %" PRId64 "), got (%" PRId64 ", %" PRId64 ")", c->output.name,
                c->tokens, c->n, c->output.t->sizes[0], c->output.t->sizes[1]);
  return SGL_JIT_OK;
}

const char *jit_dtype_name(sgl_jit_dtype dtype) {
  static const char *const names[] = {[SGL_JIT_DTYPE_FLOAT32] = "float32",
                                      [SGL_JIT_DTYPE_BFLOAT16] = "bfloat16",
                                      [SGL_JIT_DTYPE_FLOAT16] = "float16",
                                      [SGL_JIT_DTYPE_FLOAT8_E4M3FN] = "float8_e4m3fn",
                                      [SGL_JIT_DTYPE_FLOAT8_E5M2] = "float8_e5m2",
                                      [SGL_JIT_DTYPE_INT32] = "int32",
                                      [SGL_JIT_DTYPE_INT64] = "int64",
                                      [SGL_JIT_DTYPE_UINT8] = "uint8",
                                      [SGL_JIT_DTYPE_BOOL] = "bool"};
  bool known = (unsigned)dtype < sizeof names / sizeof names[0] && names[dtype];
  return known ? names[dtype] : "another dtype";
}

CHECK check_input_dtypes(const struct call *c, struct jit_message m) {
  if (c->a.t->dtype != SGL_JIT_DTYPE_BFLOAT16)
    return FAIL("%s must be bfloat16, got %s", c->a.name, jit_dtype_name(c->a.t->dtype));
  if (c->w.t->dtype != SGL_JIT_DTYPE_BFLOAT16)
    return FAIL("%s must be bfloat16, got %s", c->w.name, jit_dtype_name(c->w.t->dtype));
  return SGL_JIT_OK;
}

CHECK check_output_float_dtype(const struct call *c, struct jit_message m) {
  if (c->output.t->dtype != SGL_JIT_DTYPE_FLOAT32 && c->output.t->dtype != SGL_JIT_DTYPE_BFLOAT16)
    return FAIL("%s must be float32 or bfloat16, got %s", c->output.name, jit_dtype_name(c->output.t->dtype));
  return SGL_JIT_OK;
}

CHECK check_output_bf16_dtype(const struct call *c, struct jit_message m) {
  if (c->output.t->dtype != SGL_JIT_DTYPE_BFLOAT16)
    return FAIL("%s must be bfloat16, got %s", c->output.name, jit_dtype_name(c->output.t->dtype));
  return SGL_JIT_OK;
}

/* The stride of a dimension of size 1, and every stride of an empty tensor, is free. */
static bool has_strides(const sgl_jit_tensor *t, int64_t stride0, int64_t stride1) {
  return t->sizes[0] == 0 || t->sizes[1] == 0 ||
         ((t->sizes[0] == 1 || t->strides[0] == stride0) && (t->sizes[1] == 1 || t->strides[1] == stride1));
}

CHECK check_layout(const struct call *c, struct jit_message m) {
  if (!has_strides(c->a.t, c->k, 1))
    return FAIL("%s must be packed row-major (strides %" PRId64 ", 1), got strides (%" PRId64 ", %" PRId64
                "); call .contiguous()",
                c->a.name, c->k, c->a.t->strides[0], c->a.t->strides[1]);
  if (!has_strides(c->output.t, c->n, 1))
    return FAIL("%s must be packed row-major (strides %" PRId64 ", 1), got strides (%" PRId64 ", %" PRId64
                "); pass a contiguous tensor",
                c->output.name, c->n, c->output.t->strides[0], c->output.t->strides[1]);
  if (c->w_transposed && !has_strides(c->w.t, 1, c->k))
    return FAIL("%s must be packed column-major (strides 1, %" PRId64 "), got strides (%" PRId64 ", %" PRId64
                "); pass weight.t() of a contiguous [hd_out, hd_in] weight",
                c->w.name, c->k, c->w.t->strides[0], c->w.t->strides[1]);
  if (!c->w_transposed && !has_strides(c->w.t, c->k, 1))
    return FAIL("%s must be packed row-major (strides %" PRId64 ", 1), got strides (%" PRId64 ", %" PRId64
                "); call .contiguous()",
                c->w.name, c->k, c->w.t->strides[0], c->w.t->strides[1]);
  return SGL_JIT_OK;
}

struct jit_device_text jit_device_text(const sgl_jit_tensor *t) {
  struct jit_device_text d;
  if (t->device_type == SGL_JIT_DEVICE_CUDA)
    snprintf(d.text, sizeof d.text, "cuda:%d", (int)t->device_index);
  else
    snprintf(d.text, sizeof d.text, "%s", t->device_type == SGL_JIT_DEVICE_CPU ? "the CPU" : "another device");
  return d;
}

CHECK check_device(const struct call *c, struct jit_message m) {
  if (c->a.t->device_type != SGL_JIT_DEVICE_CUDA && c->a.t->device_type != SGL_JIT_DEVICE_CPU)
    return FAIL("%s must be on a CUDA device, got %s", c->a.name, jit_device_text(c->a.t).text);
  const struct argument others[] = {c->w, c->output};
  for (int i = 0; i < 2; i++)
    if (others[i].t->device_type != c->a.t->device_type ||
        (c->a.t->device_type == SGL_JIT_DEVICE_CUDA && others[i].t->device_index != c->a.t->device_index))
      return FAIL("%s must be on %s like %s, got %s", others[i].name, jit_device_text(c->a.t).text, c->a.name,
                  jit_device_text(others[i].t).text);
  return SGL_JIT_OK;
}

static bool is_empty(const sgl_jit_tensor *t) {
  return t->sizes[0] == 0 || t->sizes[1] == 0;
}

CHECK check_data(const struct call *c, struct jit_message m) {
  const struct argument all[] = {c->a, c->w, c->output};
  for (int i = 0; i < 3; i++) {
    if (is_empty(all[i].t))
      continue;
    uintptr_t address = (uintptr_t)all[i].t->data;
    if (!address)
      return FAIL("%s has no data (NULL)", all[i].name);
    if (address % 16)
      return FAIL("%s must start at a multiple of 16 bytes, got one that starts %d bytes past; %s", all[i].name,
                  (int)(address % 16),
                  all[i].t == c->output.t ? "pass a tensor that is not such a slice" : "call .clone()");
  }
  return SGL_JIT_OK;
}

CHECK check_overlap(const struct call *c, struct jit_message m) {
  if (c->tokens == 0)
    return SGL_JIT_OK;
  uintptr_t output = (uintptr_t)c->output.t->data, a = (uintptr_t)c->a.t->data, w = (uintptr_t)c->w.t->data;
  uintptr_t output_size = (uintptr_t)(c->tokens * c->n) * (c->output.t->dtype == SGL_JIT_DTYPE_FLOAT32 ? 4 : 2);
  if (jit_overlap(output, output_size, a, (uintptr_t)(c->tokens * c->k) * 2))
    return FAIL("%s must not overlap %s", c->output.name, c->a.name);
  if (jit_overlap(output, output_size, w, (uintptr_t)(c->n * c->k) * 2))
    return FAIL("%s must not overlap %s", c->output.name, c->w.name);
  return SGL_JIT_OK;
}

static inline struct jit_gemm gemm_of(const struct call *c, enum jit_op op) {
  return (struct jit_gemm){.op = op,
                           .output = c->output.t->data,
                           .a = c->a.t->data,
                           .w = c->w.t->data,
                           .tokens = (int)c->tokens,
                           .n = (int)c->n,
                           .k = (int)c->k,
                           .output_f32 = c->output.t->dtype == SGL_JIT_DTYPE_FLOAT32,
                           .cuda = c->a.t->device_type == SGL_JIT_DEVICE_CUDA,
                           .device = c->a.t->device_index};
}

sgl_jit_status jit_check_router(const sgl_jit_tensor *output, const sgl_jit_tensor *hidden_states,
                                const sgl_jit_tensor *router_weights, struct jit_gemm *gemm, struct jit_message m) {
  struct call c = {
      .output = {"output", output}, .a = {"hidden_states", hidden_states}, .w = {"router_weights", router_weights}};
  sgl_jit_status status;
  if ((status = check_present(&c, m)) || (status = check_rank(&c, m)) || (status = check_same_k(&c, m)) ||
      (status = check_k(&c, m)) || (status = check_experts(&c, m)) || (status = check_tokens(&c, m)) ||
      (status = check_input_dtypes(&c, m)) || (status = check_output_float_dtype(&c, m)) ||
      (status = check_output_shape(&c, m)) || (status = check_layout(&c, m)) || (status = check_device(&c, m)) ||
      (status = check_data(&c, m)) || (status = check_overlap(&c, m)))
    return status;
  *gemm = gemm_of(&c, JIT_ROUTER);
  return SGL_JIT_OK;
}

sgl_jit_status jit_check_fused_a(const sgl_jit_tensor *output, const sgl_jit_tensor *mat_a, const sgl_jit_tensor *mat_b,
                                 struct jit_gemm *gemm, struct jit_message m) {
  struct call c = {.output = {"output", output}, .a = {"mat_a", mat_a}, .w = {"mat_b", mat_b}, .w_transposed = true};
  sgl_jit_status status;
  if ((status = check_present(&c, m)) || (status = check_rank(&c, m)) || (status = check_tokens(&c, m)) ||
      (status = check_k(&c, m)) || (status = check_same_k(&c, m)) || (status = check_hd_out(&c, m)) ||
      (status = check_output_shape(&c, m)) || (status = check_layout(&c, m)) || (status = check_input_dtypes(&c, m)) ||
      (status = check_output_bf16_dtype(&c, m)) || (status = check_device(&c, m)) || (status = check_data(&c, m)) ||
      (status = check_overlap(&c, m)))
    return status;
  *gemm = gemm_of(&c, JIT_FUSED_A);
  return SGL_JIT_OK;
}

sgl_jit_status jit_check_spec(const sgl_jit_kernel_spec *spec, struct jit_message m) {
  if (!spec)
    return FAIL("spec is NULL");
  if ((int)spec->op < 0 || (int)spec->op >= JIT_OPS)
    return FAIL("there is no operator %d", (int)spec->op);
  if (!jit_has_shape((enum jit_op)spec->op)) {
    if (spec->n != 0 || spec->k != 0 || spec->output_dtype != SGL_JIT_DTYPE_OTHER)
      return FAIL("n, k and output_dtype of %s must be 0, one kernel serves every shape",
                  jit_op_name((enum jit_op)spec->op));
    return SGL_JIT_OK;
  }
  bool router = spec->op == SGL_JIT_OP_DSV3_ROUTER_GEMM;
  int n_multiple = router ? 8 : 16, n_most = router ? MAX_EXPERTS : MAX_WIDTH;
  if (spec->n <= 0 || spec->n % n_multiple || spec->n > n_most)
    return FAIL("n (%s) must be a positive multiple of %d up to %d, got %" PRId64, router ? "num_experts" : "hd_out",
                n_multiple, n_most, spec->n);
  if (spec->k <= 0 || spec->k % K_MULTIPLE || spec->k > MAX_WIDTH)
    return FAIL("k (%s) must be a positive multiple of %d up to %d, got %" PRId64, router ? "hidden_dim" : "hd_in",
                K_MULTIPLE, MAX_WIDTH, spec->k);
  if (spec->output_dtype != SGL_JIT_DTYPE_BFLOAT16 && (!router || spec->output_dtype != SGL_JIT_DTYPE_FLOAT32))
    return FAIL("output_dtype must be %s, got %s", router ? "float32 or bfloat16" : "bfloat16",
                jit_dtype_name(spec->output_dtype));
  return SGL_JIT_OK;
}
