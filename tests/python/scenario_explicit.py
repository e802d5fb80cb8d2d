"""torch's entry points are switched off; sgl_kernel_compat is imported, after everything else."""
import sys

import torch
import sgl_kernel
from checks import assert_close, operands

assert "sgl_kernel_compat" not in sys.modules
try:
    from sgl_kernel import dsv3_router_gemm
except ImportError:
    import sgl_kernel_compat


def test_served_from_now_on():
    from sgl_kernel.gemm import dsv3_router_gemm

    a, w, want = operands(torch, 2, 256)
    assert_close(torch, dsv3_router_gemm(a, w), want)
    output = torch.zeros(2, 256)
    torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w)
    assert_close(torch, output, want)
