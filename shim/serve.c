#include "shim/serve.h"

#include "shim/policy.h"
#include "shim/shadow.h"
#include "shim/usage.h"

#include "compat_table.h"

#include <sgl_kernel_jit/sgl_kernel_jit.h>
#include <stdio.h>

/* --- the kernels -------------------------------------------------------------------------------------------------- */

static sgl_jit_status run_fused_a(const sgl_jit_tensor t[], const uint64_t numbers[], void *stream, char *message,
                                  size_t message_size) {
  (void)numbers;
  return sgl_jit_dsv3_fused_a_gemm(&t[0], &t[1], &t[2], stream, message, message_size);
}

static sgl_jit_status run_router(const sgl_jit_tensor t[], const uint64_t numbers[], void *stream, char *message,
                                 size_t message_size) {
  (void)numbers;
  return sgl_jit_dsv3_router_gemm(&t[0], &t[1], &t[2], stream, message, message_size);
}

static sgl_jit_status run_downcast(const sgl_jit_tensor t[], const uint64_t numbers[], void *stream, char *message,
                                   size_t message_size) {
  return sgl_jit_downcast_fp8(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], (int64_t)numbers[0], (int64_t)numbers[1],
                              stream, message, message_size);
}

static sgl_jit_status run_quant(const sgl_jit_tensor t[], const uint64_t numbers[], void *stream, char *message,
                                size_t message_size) {
  return sgl_jit_sgl_per_tensor_quant_fp8(&t[0], &t[1], &t[2], serve_bool(numbers[0]), stream, message, message_size);
}

static sgl_jit_status run_merge(const sgl_jit_tensor t[], const uint64_t numbers[], void *stream, char *message,
                                size_t message_size) {
  (void)numbers;
  return sgl_jit_merge_state(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], stream, message, message_size);
}

static sgl_jit_status run_packbits(const sgl_jit_tensor t[], const uint64_t numbers[], void *stream, char *message,
                                   size_t message_size) {
  return sgl_jit_segment_packbits(&t[0], &t[1], &t[2], &t[3], (int64_t)numbers[0], stream, message, message_size);
}

static sgl_jit_status run_store(const sgl_jit_tensor t[], const uint64_t numbers[], void *stream, char *message,
                                size_t message_size) {
  (void)numbers;
  return sgl_jit_set_kv_buffer_kernel(&t[0], &t[1], &t[2], &t[3], &t[4], stream, message, message_size);
}

static sgl_jit_status run_hadamard(const sgl_jit_tensor t[], const uint64_t numbers[], void *stream, char *message,
                                   size_t message_size) {
  return sgl_jit_hadamard_transform(&t[0], &t[1], serve_double(numbers[0]), stream, message, message_size);
}

/* False for a tensor whose elements do not lie in one piece: counted, they would not say how much memory there is. */
static bool count_packed(const sgl_jit_tensor *t, int64_t *count) {
  *count = 1;
  for (int d = 0; d < t->ndim; d++)
    *count *= t->sizes[d];
  int64_t step = 1;
  for (int d = t->ndim - 1; d >= 0 && *count > 0; d--) {
    if (t->sizes[d] != 1 && t->strides[d] != step)
      return false;
    step *= t->sizes[d];
  }
  return true;
}

static sgl_jit_status run_bmm_fp8(const sgl_jit_tensor t[], const uint64_t numbers[], void *stream, char *message,
                                  size_t message_size) {
  (void)numbers; /* the handle of a cuBLAS that is not used */
  const sgl_jit_tensor *a = &t[0], *b = &t[1], *output = &t[2], *workspace = &t[5];
  int64_t bytes = 0;
  if (!count_packed(workspace, &bytes)) {
    snprintf(message, message_size, "bmm_fp8: workspace_buffer must be packed; pass a contiguous tensor");
    return SGL_JIT_ERROR_INVALID_ARGUMENT;
  }
  if (a->device_type == SGL_JIT_DEVICE_CUDA &&
      (workspace->device_type != SGL_JIT_DEVICE_CUDA || workspace->device_index != a->device_index)) {
    snprintf(message, message_size, "bmm_fp8: workspace_buffer must be on cuda:%d like A", (int)a->device_index);
    return SGL_JIT_ERROR_INVALID_ARGUMENT;
  }
  return sgl_jit_bmm_fp8(output, a, b, &t[3], &t[4], bytes ? workspace->data : NULL, (size_t)bytes, stream, message,
                         message_size);
}

static const struct kernel {
  const char *name;
  const char *old_operator; /* where the deleted operator has another name */
  const char *jit_schema;   /* where it does not say what is written, or is another one */
  int count, operands, first_input, output, outputs;
  int numbers;
  bool takes_stream;
  bool is_gemm; /* output [m, n], a [m, k] and b: one kernel for each n, k and dtype of the output */
  bool is_compared;
  const char *tensors[SERVE_TENSORS];
  sgl_jit_status (*run)(const sgl_jit_tensor tensors[], const uint64_t numbers[], void *stream, char *message,
                        size_t message_size);
} kernels[SERVE_COUNT] = {
    [SERVE_BMM_FP8] = {.name = "bmm_fp8",
                       .count = 6,
                       .operands = 5,
                       .output = 2,
                       .outputs = 1,
                       .numbers = 1,
                       .is_compared = true,
                       .tensors = {"A", "B", "D", "A_scale", "B_scale", "workspace_buffer"},
                       .run = run_bmm_fp8},
    [SERVE_DOWNCAST_FP8] = {.name = "downcast_fp8",
                            .jit_schema = "downcast_fp8(Tensor k, Tensor v, Tensor! k_out, Tensor! v_out, Tensor "
                                          "k_scale, Tensor v_scale, Tensor loc, int mult, int offset) -> ()",
                            .count = 7,
                            .operands = 7,
                            .output = 2,
                            .outputs = 2,
                            .numbers = 2,
                            .tensors = {"k", "v", "k_out", "v_out", "k_scale", "v_scale", "loc"},
                            .run = run_downcast},
    [SERVE_DSV3_FUSED_A_GEMM] = {.name = "dsv3_fused_a_gemm",
                                 .count = 3,
                                 .operands = 3,
                                 .first_input = 1,
                                 .outputs = 1,
                                 .is_gemm = true,
                                 .is_compared = true,
                                 .tensors = {"output", "mat_a", "mat_b"},
                                 .run = run_fused_a},
    [SERVE_DSV3_ROUTER_GEMM] = {.name = "dsv3_router_gemm",
                                .count = 3,
                                .operands = 3,
                                .first_input = 1,
                                .outputs = 1,
                                .is_gemm = true,
                                .is_compared = true,
                                .tensors = {"output", "mat_a", "mat_b"},
                                .run = run_router},
    [SERVE_HADAMARD_TRANSFORM] = {.name = "hadamard_transform",
                                  .jit_schema = "hadamard_transform(Tensor x, Tensor! output, float scale) -> ()",
                                  .count = 2,
                                  .operands = 2,
                                  .output = 1,
                                  .outputs = 1,
                                  .numbers = 1,
                                  .tensors = {"x", "output"},
                                  .run = run_hadamard},
    [SERVE_MERGE_STATE] = {.name = "merge_state",
                           .count = 6,
                           .operands = 6,
                           .output = 4,
                           .outputs = 2,
                           .tensors = {"v_a", "s_a", "v_b", "s_b", "v_merged", "s_merged"},
                           .run = run_merge},
    [SERVE_SEGMENT_PACKBITS] = {.name = "segment_packbits",
                                .jit_schema = "segment_packbits(Tensor x, Tensor input_indptr, Tensor output_indptr, "
                                              "Tensor! y, int batch_size) -> ()",
                                .count = 4,
                                .operands = 4,
                                .output = 3,
                                .outputs = 1,
                                .numbers = 1,
                                .takes_stream = true,
                                .tensors = {"x", "input_indptr", "output_indptr", "y"},
                                .run = run_packbits},
    [SERVE_SET_KV_BUFFER_KERNEL] = {.name = "set_kv_buffer_kernel",
                                    .old_operator = "store_kv_cache",
                                    .jit_schema = "store_kv_cache(Tensor! k_cache, Tensor! v_cache, Tensor out_loc, "
                                                  "Tensor k, Tensor v) -> ()",
                                    .count = 5,
                                    .operands = 5,
                                    .first_input = 3,
                                    .outputs = 2,
                                    .tensors = {"k_cache", "v_cache", "out_loc", "k", "v"},
                                    .run = run_store},
    [SERVE_PER_TENSOR_QUANT_FP8] = {.name = "sgl_per_tensor_quant_fp8",
                                    .count = 3,
                                    .operands = 3,
                                    .output = 1,
                                    .outputs = 2,
                                    .numbers = 1,
                                    .tensors = {"input", "output_q", "output_s"},
                                    .run = run_quant},
};

const char *serve_name(enum serve_kernel kernel) {
  return kernels[kernel].name;
}

unsigned serve_symbol(enum serve_kernel kernel) {
  static const unsigned symbols[SERVE_COUNT] = {[SERVE_BMM_FP8] = COMPAT_SYMBOL_bmm_fp8,
                                                [SERVE_DOWNCAST_FP8] = COMPAT_SYMBOL_downcast_fp8,
                                                [SERVE_DSV3_FUSED_A_GEMM] = COMPAT_SYMBOL_dsv3_fused_a_gemm,
                                                [SERVE_DSV3_ROUTER_GEMM] = COMPAT_SYMBOL_dsv3_router_gemm,
                                                [SERVE_HADAMARD_TRANSFORM] = COMPAT_SYMBOL_hadamard_transform,
                                                [SERVE_MERGE_STATE] = COMPAT_SYMBOL_merge_state,
                                                [SERVE_PER_TENSOR_QUANT_FP8] = COMPAT_SYMBOL_sgl_per_tensor_quant_fp8,
                                                [SERVE_SEGMENT_PACKBITS] = COMPAT_SYMBOL_segment_packbits,
                                                [SERVE_SET_KV_BUFFER_KERNEL] = COMPAT_SYMBOL_set_kv_buffer_kernel};
  return symbols[kernel];
}

const char *serve_old_operator(enum serve_kernel kernel) {
  return kernels[kernel].old_operator ? kernels[kernel].old_operator : kernels[kernel].name;
}

const char *serve_jit_operator(enum serve_kernel kernel) {
  return serve_old_operator(kernel);
}

const char *serve_jit_schema(enum serve_kernel kernel) {
  return kernels[kernel].jit_schema;
}

bool serve_takes_stream(enum serve_kernel kernel) {
  return kernels[kernel].takes_stream;
}

int serve_numbers(enum serve_kernel kernel) {
  return kernels[kernel].numbers;
}

bool serve_is_output(enum serve_kernel kernel, int tensor) {
  return tensor >= kernels[kernel].output && tensor < kernels[kernel].output + kernels[kernel].outputs;
}

bool serve_is_compared(enum serve_kernel kernel) {
  return kernels[kernel].is_compared;
}

int serve_tensors(enum serve_kernel kernel) {
  return kernels[kernel].count;
}

const char *serve_tensor_name(enum serve_kernel kernel, int tensor) {
  return kernels[kernel].tensors[tensor];
}

int serve_operands(enum serve_kernel kernel) {
  return kernels[kernel].operands;
}

int serve_input(enum serve_kernel kernel) {
  return kernels[kernel].first_input;
}

int serve_output(enum serve_kernel kernel) {
  return kernels[kernel].output;
}

const char *serve_dtype_name(sgl_jit_dtype dtype) {
  static const char *const names[] = {[SGL_JIT_DTYPE_OTHER] = "other",
                                      [SGL_JIT_DTYPE_FLOAT32] = "float32",
                                      [SGL_JIT_DTYPE_BFLOAT16] = "bfloat16",
                                      [SGL_JIT_DTYPE_FLOAT16] = "float16",
                                      [SGL_JIT_DTYPE_FLOAT8_E4M3FN] = "float8_e4m3fn",
                                      [SGL_JIT_DTYPE_FLOAT8_E5M2] = "float8_e5m2",
                                      [SGL_JIT_DTYPE_INT32] = "int32",
                                      [SGL_JIT_DTYPE_INT64] = "int64",
                                      [SGL_JIT_DTYPE_UINT8] = "uint8",
                                      [SGL_JIT_DTYPE_BOOL] = "bool"};
  return names[dtype];
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

static sgl_jit_dtype dtype_of(const struct torch_abi *torch, int32_t dtype) {
  return dtype == torch->dtype_bfloat16        ? SGL_JIT_DTYPE_BFLOAT16
         : dtype == torch->dtype_float32       ? SGL_JIT_DTYPE_FLOAT32
         : dtype == torch->dtype_float16       ? SGL_JIT_DTYPE_FLOAT16
         : dtype == torch->dtype_float8_e4m3fn ? SGL_JIT_DTYPE_FLOAT8_E4M3FN
         : dtype == torch->dtype_float8_e5m2   ? SGL_JIT_DTYPE_FLOAT8_E5M2
         : dtype == torch->dtype_int32         ? SGL_JIT_DTYPE_INT32
         : dtype == torch->dtype_int64         ? SGL_JIT_DTYPE_INT64
         : dtype == torch->dtype_uint8         ? SGL_JIT_DTYPE_UINT8
         : dtype == torch->dtype_bool          ? SGL_JIT_DTYPE_BOOL
                                               : SGL_JIT_DTYPE_OTHER;
}

bool serve_view(const struct torch_abi *torch, void *tensor, sgl_jit_tensor *view) {
  int64_t dim, *sizes, *strides;
  int32_t dtype, device_type, device_index;
  if (!tensor || torch->get_dim(tensor, &dim) != 0 || torch->get_sizes(tensor, &sizes) != 0 ||
      torch->get_strides(tensor, &strides) != 0 || torch->get_dtype(tensor, &dtype) != 0 ||
      torch->get_device_type(tensor, &device_type) != 0 || torch->get_device_index(tensor, &device_index) != 0 ||
      torch->get_data_ptr(tensor, &view->data) != 0)
    return false;
  view->dtype = dtype_of(torch, dtype);
  view->device_type = device_type == torch->device_type_cuda  ? SGL_JIT_DEVICE_CUDA
                      : device_type == torch->device_type_cpu ? SGL_JIT_DEVICE_CPU
                                                              : SGL_JIT_DEVICE_OTHER;
  view->device_index = device_index;
  view->ndim = (int32_t)dim;
  view->sizes = sizes;
  view->strides = strides;
  return true;
}

bool serve_run(const struct torch_abi *torch, enum serve_kernel which, void *const tensors[], const uint64_t numbers[],
               void *const *given, char *message, size_t message_size) {
  const struct kernel *kernel = &kernels[which];
  sgl_jit_tensor views[SERVE_TENSORS];
  for (int i = 0; i < kernel->count; i++) {
    if (!serve_view(torch, tensors[i], &views[i])) {
      snprintf(message, message_size, "%s: %s is not a dense tensor with data%s", kernel->name, kernel->tensors[i],
               tensors[i] ? torch_abi_what(torch).text : "");
      return false;
    }
  }
  void *stream = given ? *given : NULL;
  const sgl_jit_tensor *input = &views[kernel->first_input];
  if (!given && input->device_type == SGL_JIT_DEVICE_CUDA && !torch_abi_cuda_stream(input->device_index, &stream)) {
    snprintf(message, message_size, "%s: torch does not tell its current stream of cuda:%d%s", kernel->name,
             (int)input->device_index, torch_abi_no_stream(torch).text);
    return false;
  }
  if (policy_serve(policy_of(serve_symbol(which))) == SGL_COMPAT_SERVE_REFERENCE)
    return serve_reference(which, views, numbers, stream, message, message_size);
  if (kernel->run(views, numbers, stream, message, message_size) != SGL_JIT_OK)
    return false;
  if (kernel->is_gemm)
    usage_kernel(which, views[0].sizes[1], views[1].sizes[1], (int)views[0].dtype);
  if (shadow_is_on(which))
    shadow_after(torch, which, views, tensors, stream);
  return true;
}
