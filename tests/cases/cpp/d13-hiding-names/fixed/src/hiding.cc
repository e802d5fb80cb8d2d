#include "sgl_kernel_ops.h"
#include "sgl_kernel_jit/torch.h"

struct Table {
  std::function<void()> dsv3_router_gemm;
};
Table table{.dsv3_router_gemm = &::dsv3_router_gemm};

void hiding(at::Tensor& out, std::vector<Op>& ops) {
  for (auto& dsv3_router_gemm : ops) dsv3_router_gemm(out, out, out);
  for (int dsv3_fused_a_gemm = 0; dsv3_fused_a_gemm < 3; ++dsv3_fused_a_gemm) use(dsv3_fused_a_gemm);
  if (auto dsv3_router_gemm = find(ops)) {
    dsv3_router_gemm(out, out, out);
  }
  auto [first, dsv3_router_gemm] = pair(ops);
}

void pointer(at::Tensor& out) {
  void (*dsv3_router_gemm)(at::Tensor&) = nullptr;
  dsv3_router_gemm(out);
}

auto generic = [](auto&& dsv3_router_gemm, at::Tensor& out) { dsv3_router_gemm(out, out, out); };
auto capture = [dsv3_router_gemm = 3] { return dsv3_router_gemm; };

template <auto dsv3_router_gemm>
void instance(at::Tensor& out) {
  dsv3_router_gemm(out, out, out);
}

void label(at::Tensor& out) {
  goto dsv3_router_gemm;
dsv3_router_gemm:
  sgl_kernel_jit::dsv3_router_gemm(out, out, out);
}
