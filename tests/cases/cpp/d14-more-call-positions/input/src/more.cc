#include "sgl_kernel_ops.h"

void more(at::Tensor& out, bool x) {
  x ? dsv3_router_gemm(out, out, out) : dsv3_fused_a_gemm(out, out, out);
  x && (dsv3_router_gemm(out, out, out), true);
  switch (x) {
    case 0: dsv3_router_gemm(out, out, out); break;
    default: dsv3_fused_a_gemm(out, out, out);
  }
  do dsv3_router_gemm(out, out, out); while (x);
  using Result = decltype(dsv3_router_gemm(out, out, out));
  using Function = decltype(dsv3_router_gemm);
  constexpr bool quiet = noexcept(::dsv3_router_gemm(out, out, out));
  (dsv3_router_gemm)(out, out, out);
  (*dsv3_router_gemm)(out, out, out);
  Wrapped<dsv3_router_gemm>::run(out);
  dsv3_router_gemm(out, {1, 2}, [](int a, int b) { return a, b; }(1, 2));
  return::dsv3_router_gemm(out, out, out);
}

struct Holder {
  Holder(at::Tensor& out) : function_{&dsv3_fused_a_gemm}, out_(out) {
    dsv3_router_gemm(out, out, out);
  }
};

auto at_start = (dsv3_router_gemm(make(), make(), make()), 0);
std::map<std::string, Function> names = {{"dsv3_router_gemm", &dsv3_router_gemm},
                                         {"fused", dsv3_fused_a_gemm}};
