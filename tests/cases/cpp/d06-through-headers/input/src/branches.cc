#include "common.h"

void branches(at::Tensor& out, const at::Tensor& x) {
#ifdef USE_ROCM
  torch::linear_out(out, x, x);
#elif defined(WITH_ROUTER) && AT_LEAST(2, 1)
  dsv3_router_gemm(out, x, x);
#else
  dsv3_router_gemm(out, x, x.t());
#endif
#if CUDA_VERSION >= 12040
  dsv3_fused_a_gemm(out, x, x);
#endif
#ifndef USE_ROCM
  dsv3_fused_a_gemm(out, x, x);
#endif
}
