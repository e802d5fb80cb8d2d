"""Stands for a newer wheel, without the deleted names. Like the real one it imports torch first, then loads its library,
then its Python modules."""
import torch

_library = torch.library.Library("sgl_kernel", "FRAGMENT")
_library.define("silu_and_mul(Tensor x) -> Tensor")
_library.impl("silu_and_mul", lambda x: x * 2, "CPU")

from sgl_kernel.gemm import fp8_scaled_mm
from sgl_kernel.moe import topk_softmax

__all__ = ["fp8_scaled_mm", "topk_softmax"]
