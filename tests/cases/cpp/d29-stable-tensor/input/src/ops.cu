#include "ops.h"

void dsv3_router_gemm(torch::stable::Tensor& output, const torch::stable::Tensor& mat_a, const torch::stable::Tensor& mat_b) {
  run(output, mat_a, mat_b);
}

STABLE_TORCH_LIBRARY_IMPL(_C, CUDA, ops) { ops.impl("dsv3_router_gemm", TORCH_BOX(&dsv3_router_gemm)); }
