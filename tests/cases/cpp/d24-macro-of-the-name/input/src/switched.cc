#include "sgl_kernel_ops.h"
#ifdef WITH_MINE
#define dsv3_router_gemm my_router
#endif
void f(at::Tensor& a) { dsv3_router_gemm(a, a, a); }
