"""sgl_kernel_compat is damaged: torch and sgl_kernel are there all the same."""
import torch
import sgl_kernel


def test_torch_is_there():
    assert torch.ones(1).item() == 1 and sgl_kernel.fp8_scaled_mm() == "fp8_scaled_mm"
