"""Stands for an old wheel: it has the router's name and operator, and ends in an error if somebody else took it."""
import os

import torch

_library = torch.library.Library("sgl_kernel", "FRAGMENT")


def _fill(output, mat_a, mat_b):
    output.fill_(42)


def _load():
    _library.define("dsv3_router_gemm(Tensor! output, Tensor mat_a, Tensor mat_b) -> ()")
    _library.impl("dsv3_router_gemm", _fill, "CPU")


if not os.environ.get("LATE"):
    _load()

from sgl_kernel.gemm import dsv3_router_gemm

if os.environ.get("LATE"):
    _load()
