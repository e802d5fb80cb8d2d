// The part of the project that was compiled against the old wheel and is not compiled again: only the mangled names of
// the kernel library are left in the binary. It needs no torch headers, so this sample builds it everywhere.
namespace at {
class Tensor;
}

void dsv3_router_gemm(at::Tensor& output, const at::Tensor& mat_a, const at::Tensor& mat_b);
void dsv3_fused_a_gemm(at::Tensor& output, const at::Tensor& mat_a, const at::Tensor& mat_b);

extern "C" void legacy_router(at::Tensor* output, const at::Tensor* hidden_states, const at::Tensor* router_weights) {
  dsv3_router_gemm(*output, *hidden_states, *router_weights);
}

extern "C" void legacy_fused_a(at::Tensor* output, const at::Tensor* mat_a, const at::Tensor* mat_b) {
  dsv3_fused_a_gemm(*output, *mat_a, *mat_b);
}
