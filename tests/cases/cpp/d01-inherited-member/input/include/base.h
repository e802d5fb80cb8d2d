#pragma once
#include <torch/all.h>

struct Base {
  void dsv3_router_gemm(at::Tensor& out, const at::Tensor& x, const at::Tensor& w);
};

template <class T>
struct TypedBase {
  void dsv3_fused_a_gemm(T& out, const T& x, const T& w);
};
