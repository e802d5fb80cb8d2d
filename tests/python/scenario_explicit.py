"""torch's entry points are switched off; sgl_kernel_compat is imported, after everything else. It
may provide sgl_kernel, but there is one."""
import sys

import torch
import sgl_kernel
from checks import assert_close, operands

assert "sgl_kernel_compat" not in sys.modules
try:
    from sgl_kernel import dsv3_router_gemm
except ImportError:
    import sgl_kernel_compat


def test_the_installed_package_stays():
    assert sgl_kernel.fp8_scaled_mm() == "fp8_scaled_mm" and "stand_ins" in sgl_kernel.__file__


def test_served_from_now_on():
    from sgl_kernel.gemm import dsv3_router_gemm

    a, w, want = operands(torch, 2, 256)
    assert_close(torch, dsv3_router_gemm(a, w), want)
    output = torch.zeros(2, 256)
    torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w)
    assert_close(torch, output, want)
