#include "sgl_kernel_ops.h"
void f(at::Tensor& a) {
  dsv3_router_\
gemm(a, a, a);
  dsv3_fused_a_gemm(a, a, a);
}
void dsv3_router_\
gemm_v2(int);
