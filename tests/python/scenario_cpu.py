"""A torch without CUDA, and not the reference backend: the served names certainly cannot run, so guards fall back."""
import torch
import sgl_kernel
from checks import operands, raises


def test_guards_fall_back():
    assert not hasattr(sgl_kernel, "dsv3_router_gemm") and not hasattr(torch.ops.sgl_kernel, "dsv3_router_gemm")
    e = raises(ImportError, "this torch is built without", lambda: exec("from sgl_kernel.gemm import dsv3_router_gemm"))
    assert type(e).__name__ == "SglKernelImportError"


def test_the_supported_name_says_why():
    import sgl_kernel_jit

    raises(RuntimeError, "CPU", sgl_kernel_jit.dsv3_router_gemm, *operands(torch, 1, 256)[:2])
