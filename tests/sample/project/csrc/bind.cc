#include <torch/extension.h>

#include "decode_step.h"
#include "sgl_kernel_ops.h"

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("decode_step", &decode_step);
  m.def("router", &dsv3_router_gemm, "logits of the router");
}
