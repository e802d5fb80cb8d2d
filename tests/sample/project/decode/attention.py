import torch

import sgl_kernel


def down_project(hidden_states, weight, latent):
    """Both down projections in one GEMM, written into `latent`."""
    if hidden_states.shape[0] > 16:
        return torch.mm(hidden_states, weight.t(), out=latent)
    return sgl_kernel.dsv3_fused_a_gemm(hidden_states, weight.t(), latent)


def scores(q, k, q_scale, k_scale):
    return sgl_kernel.bmm_fp8(q, k, q_scale, k_scale, torch.bfloat16)
