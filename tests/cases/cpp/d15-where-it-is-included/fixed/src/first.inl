#include "sgl_kernel_jit/torch.h"
inline void first(at::Tensor& out) { sgl_kernel_jit::dsv3_router_gemm(out, out, out); }
