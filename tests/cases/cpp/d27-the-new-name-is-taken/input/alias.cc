#include "sgl_kernel_ops.h"
namespace other {}
namespace sgl_kernel_jit = other;
void f(at::Tensor& a) { dsv3_router_gemm(a, a, a); }
