#include "sgl_kernel_ops.h"
#include "sgl_kernel_jit/torch.h"
module module_of(int);
void f(at::Tensor& a) { sgl_kernel_jit::dsv3_router_gemm(a, a, a); }
