// A module.
module;
#include "sgl_kernel_ops.h"
#include <vector>
#include "sgl_kernel_jit/torch.h"

export module x;
import y;
void f(at::Tensor& a) { sgl_kernel_jit::dsv3_router_gemm(a, a, a); }
