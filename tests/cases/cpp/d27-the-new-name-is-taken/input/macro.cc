#include "sgl_kernel_ops.h"
#define sgl_kernel_jit sgl_kernel_jit_v2
void f(at::Tensor& a) { dsv3_router_gemm(a, a, a); }
