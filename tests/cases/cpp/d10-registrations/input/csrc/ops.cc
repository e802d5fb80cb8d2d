#include <torch/library.h>

#define SPACE sgl_kernel

void register_gemm(torch::Library& m) {
  m.def("dsv3_router_gemm(Tensor! output, Tensor mat_a, Tensor mat_b) -> ()");
}
void register_mine(torch::Library& m) {
  m.def("dsv3_router_gemm(Tensor! output, Tensor mat_a, Tensor mat_b) -> ()");
}

TORCH_LIBRARY_FRAGMENT(SPACE, m) {
  register_gemm(m);
  m.impl("dsv3_router_gemm", c10::DispatchKey::CUDA, TORCH_FN(mine::router));
}
TORCH_LIBRARY(mine, m) {
  register_mine(m);
}

static torch::Library late(torch::Library::FRAGMENT, "sgl_kernel", c10::nullopt, __FILE__, __LINE__);
static auto other = torch::Library(torch::Library::IMPL, "mine", c10::DispatchKey::CUDA, __FILE__, __LINE__);
void at_start() {
  late.def("dsv3_fused_a_gemm(Tensor! output, Tensor mat_a, Tensor mat_b) -> ()");
  other.impl("dsv3_fused_a_gemm", mine::fused_a);
}

static auto old_style =
    torch::RegisterOperators().op("sgl_kernel::dsv3_router_gemm(Tensor! output, Tensor a, Tensor b) -> ()", &mine::router);
