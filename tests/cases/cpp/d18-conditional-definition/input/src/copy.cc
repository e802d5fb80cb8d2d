#include "sgl_kernel_ops.h"
#ifdef USE_ROCM
void dsv3_router_gemm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) { at::mm_out(out, a, b.t()); }
#endif
#if 0
void dsv3_fused_a_gemm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) { at::mm_out(out, a, b); }
#endif
