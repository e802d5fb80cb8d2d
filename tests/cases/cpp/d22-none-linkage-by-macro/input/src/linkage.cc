#include "../include/linkage.h"
#include <torch/all.h>

PLAIN_C void dsv3_router_gemm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
INTERNAL void dsv3_fused_a_gemm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) { at::mm_out(out, a, b); }

void linkage(at::Tensor& out, Unknown& unknown) {
  dsv3_router_gemm(out, out, out);
  dsv3_fused_a_gemm(out, unknown.first(), unknown.second());
}
