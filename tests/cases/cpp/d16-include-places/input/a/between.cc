#define FIRST 1
#include <torch/all.h>
#define SECOND 2
#include "sgl_kernel_ops.h" /* goes
  on here */
void between(at::Tensor& out) { dsv3_router_gemm(out, out, out); }
