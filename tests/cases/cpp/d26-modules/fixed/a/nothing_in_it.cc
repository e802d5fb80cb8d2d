module;

#include "sgl_kernel_jit/torch.h"
export module x;
extern "C++" void dsv3_router_gemm(at::Tensor&, const at::Tensor&, const at::Tensor&);
void f(at::Tensor& a) { sgl_kernel_jit::dsv3_router_gemm(a, a, a); }
