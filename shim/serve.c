#include "shim/serve.h"

#include <sgl_kernel_jit/sgl_kernel_jit.h>
#include <stdio.h>

static const struct {
  const char *name;
  sgl_jit_status (*run)(const sgl_jit_tensor *, const sgl_jit_tensor *, const sgl_jit_tensor *, void *, char *, size_t);
} kernels[SERVE_COUNT] = {
    [SERVE_DSV3_FUSED_A_GEMM] = {"dsv3_fused_a_gemm", sgl_jit_dsv3_fused_a_gemm},
    [SERVE_DSV3_ROUTER_GEMM] = {"dsv3_router_gemm", sgl_jit_dsv3_router_gemm},
};

const char *serve_name(enum serve_kernel kernel) {
  return kernels[kernel].name;
}

/* False when torch cannot describe the tensor: an undefined, sparse or fake one. */
static bool view_of(const struct torch_abi *torch, void *tensor, sgl_jit_tensor *view) {
  int64_t dim, *sizes, *strides;
  int32_t dtype, device_type, device_index;
  if (!tensor || torch->get_dim(tensor, &dim) != 0 || torch->get_sizes(tensor, &sizes) != 0 ||
      torch->get_strides(tensor, &strides) != 0 || torch->get_dtype(tensor, &dtype) != 0 ||
      torch->get_device_type(tensor, &device_type) != 0 || torch->get_device_index(tensor, &device_index) != 0 ||
      torch->get_data_ptr(tensor, &view->data) != 0)
    return false;
  view->dtype = dtype == torch->dtype_bfloat16  ? SGL_JIT_DTYPE_BFLOAT16
                : dtype == torch->dtype_float32 ? SGL_JIT_DTYPE_FLOAT32
                                                : SGL_JIT_DTYPE_OTHER;
  view->device_type = device_type == torch->device_type_cuda  ? SGL_JIT_DEVICE_CUDA
                      : device_type == torch->device_type_cpu ? SGL_JIT_DEVICE_CPU
                                                              : SGL_JIT_DEVICE_OTHER;
  view->device_index = device_index;
  view->ndim = (int32_t)dim;
  view->sizes = sizes;
  view->strides = strides;
  return true;
}

bool serve_run(const struct torch_abi *torch, enum serve_kernel kernel, void *const tensors[3], char *message,
               size_t message_size) {
  static const char *const names[3] = {"output", "mat_a", "mat_b"};
  sgl_jit_tensor views[3];
  for (int i = 0; i < 3; i++) {
    if (!view_of(torch, tensors[i], &views[i])) {
      snprintf(message, message_size, "%s: %s is not a dense tensor with data%s", kernels[kernel].name, names[i],
               tensors[i] ? torch_abi_what(torch).text : "");
      return false;
    }
  }
  void *stream = NULL;
  const sgl_jit_tensor *mat_a = &views[1];
  if (mat_a->device_type == SGL_JIT_DEVICE_CUDA && !torch_abi_cuda_stream(mat_a->device_index, &stream)) {
    snprintf(message, message_size, "%s: torch does not tell its current stream of cuda:%d", kernels[kernel].name,
             (int)mat_a->device_index);
    return false;
  }
  return kernels[kernel].run(&views[0], &views[1], &views[2], stream, message, message_size) == SGL_JIT_OK;
}
