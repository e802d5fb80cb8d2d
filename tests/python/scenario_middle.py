"""sgl_kernel is imported first: it imports torch, whose entry point comes in the middle of it."""
import sgl_kernel
import torch
from checks import assert_close, operands


def test_served_all_the_same():
    from sgl_kernel.gemm import dsv3_router_gemm

    assert dsv3_router_gemm is sgl_kernel.dsv3_router_gemm
    a, w, want = operands(torch, 2, 256)
    output = torch.zeros(2, 256)
    torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w)
    assert_close(torch, output, want)
