#include "sgl_kernel_ops.h"
namespace sgl_kernel_jit {
void more();
}
namespace jit = sgl_kernel_jit;
using namespace sgl_kernel_jit;
PYBIND11_MODULE(sgl_kernel_jit, m) {
  ::sgl_kernel_jit::more();
}
void f(at::Tensor& a) { dsv3_router_gemm(a, a, a); }
