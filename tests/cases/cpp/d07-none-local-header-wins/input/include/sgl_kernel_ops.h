#pragma once
#include <torch/all.h>

namespace mine {
void dsv3_router_gemm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
}
using mine::dsv3_router_gemm;
static inline void dsv3_fused_a_gemm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) { at::mm_out(out, a, b); }
