"""Expert gate of the decoder: logits for the router, float32."""

import torch
from sgl_kernel import (
    dsv3_router_gemm,  # decode only, at most 16 tokens
    topk_softmax,
)


class Gate(torch.nn.Module):
    def __init__(self, num_experts: int, hidden_dim: int):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(num_experts, hidden_dim, dtype=torch.bfloat16))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        if hidden_states.shape[0] <= 16 and hidden_states.shape[1] == 7168:
            return dsv3_router_gemm(hidden_states, self.weight, out_dtype=torch.float32)
        return torch.nn.functional.linear(hidden_states, self.weight).float()


def select(logits: torch.Tensor, top_k: int):
    weights = torch.empty(logits.shape[0], top_k)
    ids = torch.empty(logits.shape[0], top_k, dtype=torch.int32)
    topk_softmax(weights, ids, logits, True)
    return weights, ids
