// An old wheel's common_ops: it registers the router operator with its own kernel, which writes 42, and exports it.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

void dsv3_router_gemm(at::Tensor &output, const at::Tensor &, const at::Tensor &) {
  float *data = static_cast<float *>(output.mutable_data_ptr());
  for (int64_t i = 0; i < output.numel(); i++)
    data[i] = 42;
}

static void router(at::Tensor output, const at::Tensor &mat_a, const at::Tensor &mat_b) {
  dsv3_router_gemm(output, mat_a, mat_b);
}

TORCH_LIBRARY_FRAGMENT(sgl_kernel, m) {
  m.def("dsv3_router_gemm(Tensor! output, Tensor mat_a, Tensor mat_b) -> ()");
  m.impl("dsv3_router_gemm", c10::DispatchKey::CPU, TORCH_FN(router));
}
