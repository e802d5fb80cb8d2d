#include "lib/acme.h"

namespace short_name = acme::v2;

void use(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  dsv3_router_gemm(out, a, b);
  auto fn = &dsv3_router_gemm;
  fn(out, a, b);
  short_name::dsv3_router_gemm(out, a, b);
}
