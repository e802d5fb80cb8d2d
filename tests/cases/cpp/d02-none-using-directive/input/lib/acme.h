#pragma once
#include <torch/all.h>

namespace acme {
inline namespace v2 {
void dsv3_router_gemm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
}
}  // namespace acme
using namespace acme;
