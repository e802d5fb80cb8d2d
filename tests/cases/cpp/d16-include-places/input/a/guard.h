#ifndef A_GUARD_H
#define A_GUARD_H
void dsv3_router_gemm(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);
inline void guard(at::Tensor& out) { dsv3_router_gemm(out, out, out); }
#endif
