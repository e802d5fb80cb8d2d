"""Stands for an old wheel: it has the router's name and operator, and ends in an error if somebody else took it."""
import torch


def _fill(output, mat_a, mat_b):
    output.fill_(42)


_library = torch.library.Library("sgl_kernel", "FRAGMENT")
_library.define("dsv3_router_gemm(Tensor! output, Tensor mat_a, Tensor mat_b) -> ()")
_library.impl("dsv3_router_gemm", _fill, "CPU")

from sgl_kernel.gemm import dsv3_router_gemm
