#include "sgl_kernel_ops.h"
#include "renames.h"
void f(at::Tensor& a) { dsv3_fused_a_gemm(a, a, a); }
