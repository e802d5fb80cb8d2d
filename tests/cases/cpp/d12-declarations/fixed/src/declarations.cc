#include <torch/all.h>
#include "sgl_kernel_jit/torch.h"

extern "C++" {
void dsv3_router_gemm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
}
struct Access {
  friend void dsv3_router_gemm(at::Tensor&, const at::Tensor&, const at::Tensor&);
};
auto dsv3_router_gemm(at::Tensor&, const at::Tensor&, const at::Tensor&) -> void;
[[gnu::visibility("default")]] __attribute__((weak)) void
dsv3_router_gemm(at::Tensor& out,
                 const at::Tensor& a, const at::Tensor& b);
extern "C" void dsv3_fused_a_gemm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);

void declarations(at::Tensor& out) {
  extern void bmm_fp8(at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, int64_t);
  bmm_fp8(out, out, out, out, out, out, 0);
  sgl_kernel_jit::dsv3_router_gemm(out, out, out);
  dsv3_fused_a_gemm(out, out, out);
}

namespace acme {
void inside(at::Tensor& out) {
  void dsv3_router_gemm(at::Tensor&, const at::Tensor&, const at::Tensor&);
  dsv3_router_gemm(out, out, out);
}
}  // namespace acme
