#include "sgl_kernel_ops.h"
void f(at::Tensor& a) {
  int sgl_kernel_jit = 0;
  dsv3_router_gemm(a, a, a);
}
