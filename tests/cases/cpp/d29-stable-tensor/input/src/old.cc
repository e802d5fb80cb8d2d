#include <torch/all.h>

void dsv3_router_gemm(at::Tensor& output, const at::Tensor& mat_a, const at::Tensor& mat_b);
