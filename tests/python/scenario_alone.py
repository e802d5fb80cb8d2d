"""SGL_KERNEL_COMPAT=standalone, and no sgl_kernel is installed."""
import torch
from checks import assert_close, operands, raises


def test_module_is_provided():
    import sgl_kernel
    from sgl_kernel.gemm import dsv3_router_gemm

    assert sgl_kernel.dsv3_router_gemm is dsv3_router_gemm is sgl_kernel.gemm.dsv3_router_gemm
    a, w, want = operands(torch, 2, 256)
    assert_close(torch, dsv3_router_gemm(a, w), want)
    output = torch.zeros(2, 256)
    torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w)
    assert_close(torch, output, want)


def test_with_deleted_names_only():
    raises(ImportError, "silu_and_mul", lambda: exec("from sgl_kernel import silu_and_mul"))
    raises(ModuleNotFoundError, "sgl_kernel.sparse_flash_attn", lambda: __import__("sgl_kernel.sparse_flash_attn"))
