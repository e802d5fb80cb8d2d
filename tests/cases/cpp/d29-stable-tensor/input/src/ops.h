#pragma once
#include <torch/csrc/stable/tensor.h>

void dsv3_router_gemm(torch::stable::Tensor& output, const torch::stable::Tensor& mat_a, const torch::stable::Tensor& mat_b);
