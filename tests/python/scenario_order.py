"""The operators are there as soon as sgl_kernel and torch are, whichever comes last, and not before."""
import os, sys

for name in os.environ["ORDER"].split():
    assert not ({"sgl_kernel", "torch"} <= set(sys.modules) and "sgl_kernel_compat._operators" in sys.modules)
    __import__(name)
import sgl_kernel
import torch
from checks import assert_close, operands, raises


def test_operators():
    a, w, want = operands(torch, 2, 256)
    output = torch.zeros(2, 256)
    torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w)
    assert_close(torch, output, want)
    raises(RuntimeError, "scaled_fp4_quant is gone", torch.ops.sgl_kernel.scaled_fp4_quant, *[output] * 4)


def test_names():
    assert sgl_kernel.lazy == "lazy" and sgl_kernel.dsv3_router_gemm
    raises(AttributeError, "lean has no nothing", lambda: sgl_kernel.nothing)
