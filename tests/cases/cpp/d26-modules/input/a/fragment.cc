// A module.
module;
#include "sgl_kernel_ops.h"
#include <vector>

export module x;
import y;
void f(at::Tensor& a) { dsv3_router_gemm(a, a, a); }
