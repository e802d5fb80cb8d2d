// Copyright the authors.

#include "sgl_kernel_jit/torch.h"
// Calls the wheel.
void dsv3_router_gemm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
void documented(at::Tensor& out) { sgl_kernel_jit::dsv3_router_gemm(out, out, out); }
