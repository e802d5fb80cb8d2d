// The C entry points of the project. They declare the old functions themselves, so they need no header of the wheel.

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
