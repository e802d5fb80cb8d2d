#include <cuda_runtime.h>

void bmm_fp8(TensorView A, TensorView B, TensorView D, TensorView A_scale, TensorView B_scale, TensorView workspace,
             int64_t cublas_handle) {}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(bmm_fp8, bmm_fp8);

void dsv3_router_gemm(float* out, const float* a, const float* b);

template <typename T>
void dsv3_fused_a_gemm(T& out, const T& a, const T& b) {}

void views(float* x, at::Tensor& t) {
  dsv3_router_gemm(x, x, x);
  dsv3_fused_a_gemm(t, t, t);
}
