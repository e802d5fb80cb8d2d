#ifndef USE_ROCM
#include "sgl_kernel_ops.h"
#include "sgl_kernel_jit/torch.h"
void whole(at::Tensor& out) { sgl_kernel_jit::dsv3_router_gemm(out, out, out); }
#endif
