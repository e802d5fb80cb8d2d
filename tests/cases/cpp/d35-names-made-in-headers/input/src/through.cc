// Calls sgl_kernel by parts of names.
#include "glue.h"
#include "sgl_kernel_ops.h"
void f(at::Tensor& o, const at::Tensor& a, const at::Tensor& b) {
  ROUTER(router_gemm)(o, a, b);
}
