#include "sgl_kernel_ops.h"
#define SGL(name) dsv3_##name
#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)
#define PREFIX dsv3_
#define CALL(name, ...) GLUE(dsv3_, name)(__VA_ARGS__)
void f(at::Tensor& o, const at::Tensor& a, const at::Tensor& b) {
  SGL(router_gemm)(o, a, b);
  GLUE(PREFIX, router_gemm)(o, a, b);
  GLUE_(PREFIX, router_gemm)(o, a, b);
  CALL(fused_a_gemm, o, a, b);
  SGL(other)(o, a, b);
  dsv3_fused_a_gemm(o, a, b);
}
