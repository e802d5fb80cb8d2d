#include "common.h"
#include "sgl_kernel_jit/torch.h"

void branches(at::Tensor& out, const at::Tensor& x) {
#ifdef USE_ROCM
  torch::linear_out(out, x, x);
#elif defined(WITH_ROUTER) && AT_LEAST(2, 1)
  sgl_kernel_jit::dsv3_router_gemm(out, x, x);
#else
  dsv3_router_gemm(out, x, x.t());
#endif
#if CUDA_VERSION >= 12040
  dsv3_fused_a_gemm(out, x, x);
#endif
#ifndef USE_ROCM
  sgl_kernel_jit::dsv3_fused_a_gemm(out, x, x);
#endif
}
