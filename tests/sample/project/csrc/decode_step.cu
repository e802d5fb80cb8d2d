// One decode step on the old kernels: router logits and the fused down projection.
#include "decode_step.h"

#include "sgl_kernel_ops.h"

void decode_step(at::Tensor& logits, at::Tensor& latent, const at::Tensor& hidden_states, const at::Tensor& router_weights,
                 const at::Tensor& mat_b) {
  dsv3_router_gemm(logits, hidden_states, router_weights);
  ::dsv3_fused_a_gemm(latent, hidden_states, mat_b);
}
