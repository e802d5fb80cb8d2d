#include "sgl_kernel_ops.h"
#include "sgl_kernel_jit/torch.h"

void more(at::Tensor& out, bool x) {
  x ? sgl_kernel_jit::dsv3_router_gemm(out, out, out) : sgl_kernel_jit::dsv3_fused_a_gemm(out, out, out);
  x && (sgl_kernel_jit::dsv3_router_gemm(out, out, out), true);
  switch (x) {
    case 0: sgl_kernel_jit::dsv3_router_gemm(out, out, out); break;
    default: sgl_kernel_jit::dsv3_fused_a_gemm(out, out, out);
  }
  do sgl_kernel_jit::dsv3_router_gemm(out, out, out); while (x);
  using Result = decltype(sgl_kernel_jit::dsv3_router_gemm(out, out, out));
  using Function = decltype(dsv3_router_gemm);
  constexpr bool quiet = noexcept(sgl_kernel_jit::dsv3_router_gemm(out, out, out));
  (dsv3_router_gemm)(out, out, out);
  (*dsv3_router_gemm)(out, out, out);
  Wrapped<dsv3_router_gemm>::run(out);
  sgl_kernel_jit::dsv3_router_gemm(out, {1, 2}, [](int a, int b) { return a, b; }(1, 2));
  return sgl_kernel_jit::dsv3_router_gemm(out, out, out);
}

struct Holder {
  Holder(at::Tensor& out) : function_{&dsv3_fused_a_gemm}, out_(out) {
    sgl_kernel_jit::dsv3_router_gemm(out, out, out);
  }
};

auto at_start = (sgl_kernel_jit::dsv3_router_gemm(make(), make(), make()), 0);
std::map<std::string, Function> names = {{"dsv3_router_gemm", &dsv3_router_gemm},
                                         {"fused", dsv3_fused_a_gemm}};
