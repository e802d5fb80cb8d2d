#include "sgl_kernel_ops.h"
struct sgl_kernel_jit {};
void f(at::Tensor& a) { dsv3_router_gemm(a, a, a); }
