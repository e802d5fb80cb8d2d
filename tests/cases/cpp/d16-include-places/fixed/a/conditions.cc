#ifdef WHEEL_IN_FOLDER
#include "sgl-kernel/sgl_kernel_ops.h"
#else
#include "sgl_kernel_ops.h"
#endif
#include "sgl_kernel_jit/torch.h"

void conditions(at::Tensor& out) { sgl_kernel_jit::dsv3_router_gemm(out, out, out); }
