#include "../include/space.h"
#include <torch/all.h>

ACME_BEGIN
void dsv3_router_gemm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) { at::mm_out(out, a, b.t()); }
ACME_END
SPACE_BEGIN(other)
void dsv3_fused_a_gemm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) { at::mm_out(out, a, b); }
void use(at::Tensor& out) { dsv3_fused_a_gemm(out, out, out); }
SPACE_END
