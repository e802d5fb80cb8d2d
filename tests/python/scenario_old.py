"""An old wheel: it stays in charge of what it has, in silence, in all load orders."""
import os, warnings

warnings.simplefilter("error")
warnings.filterwarnings("ignore", "Failed to initialize NumPy", UserWarning)  # a torch without it
for name in os.environ["ORDER"].split():
    __import__(name)
import sgl_kernel
import torch
from checks import assert_close, operands, raises


def test_its_own_name():
    from sgl_kernel import dsv3_router_gemm

    assert dsv3_router_gemm is sgl_kernel.gemm.__dict__["dsv3_router_gemm"]
    a, w, _ = operands(torch, 2, 256)
    assert (dsv3_router_gemm(a, w) == 42).all()
    output = torch.zeros(2, 256)
    torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w)
    assert (output == 42).all()


def test_the_supported_name_is_ours():
    import sgl_kernel_jit

    a, w, want = operands(torch, 2, 256)
    assert_close(torch, sgl_kernel_jit.dsv3_router_gemm(a, w), want)


def test_what_it_lacks_is_served_and_warned_about():
    e = raises(Warning, "sgl_kernel.dsv3_fused_a_gemm is deprecated", lambda: sgl_kernel.dsv3_fused_a_gemm)
    assert type(e).__name__ == "SglKernelDeprecationWarning"
    a, w, want = operands(torch, 2, 2112)
    output = torch.zeros(2, 2112, dtype=torch.bfloat16)
    op = torch.ops.sgl_kernel.dsv3_fused_a_gemm
    for _ in range(2):  # a filter makes it an error: of torch, clean, before any work, and again
        e = raises(RuntimeError, "torch.ops.sgl_kernel.dsv3_fused_a_gemm is deprecated", op, output, a, w.t())
        assert str(e).startswith("torch.ops.") and str(e).endswith("use sgl_kernel_jit.dsv3_fused_a_gemm"), e  # the warning's text
    assert not output.any()
    warnings.simplefilter("ignore")
    op(output, a, w.t())
    assert_close(torch, output, want)
    assert_close(torch, sgl_kernel.dsv3_fused_a_gemm(a, w.t()), want)
