#pragma once

void dsv3_router_gemm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
inline void once(at::Tensor& out) { dsv3_router_gemm(out, out, out); }
