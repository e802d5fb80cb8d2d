#pragma once

namespace at {
class Tensor;
}

void decode_step(at::Tensor& logits, at::Tensor& latent, const at::Tensor& hidden_states, const at::Tensor& router_weights,
                 const at::Tensor& mat_b);
