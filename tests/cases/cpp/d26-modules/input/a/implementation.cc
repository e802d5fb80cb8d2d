module;
#include "sgl_kernel_ops.h"
module x:part;
void f(at::Tensor& a) { dsv3_router_gemm(a, a, a); }
