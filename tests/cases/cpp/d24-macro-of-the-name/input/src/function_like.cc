#include "sgl_kernel_ops.h"
#define dsv3_router_gemm(a, b, c) my_router(a, b, c)
void my_router(at::Tensor&, const at::Tensor&, const at::Tensor&);
void f(at::Tensor& a, Model& m) {
  dsv3_router_gemm(a, a, a);
  m.dsv3_router_gemm(a, a, a);
}
#undef dsv3_router_gemm
void g(at::Tensor& a) { dsv3_router_gemm(a, a, a); }
