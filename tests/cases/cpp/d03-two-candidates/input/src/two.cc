#include "sgl_kernel_ops.h"

namespace acme {
void dsv3_router_gemm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
}

void hidden(at::Tensor& out, const at::Tensor& a) {
  using acme::dsv3_router_gemm;
  dsv3_router_gemm(out, a, a);
}

void both(at::Tensor& out, const at::Tensor& a) {
  using namespace acme;
  dsv3_router_gemm(out, a, a);
}

void plain(at::Tensor& out, const at::Tensor& a) {
  acme::dsv3_router_gemm(out, a, a);
  dsv3_router_gemm(out, a, a);
}
