"""No GPU, and not the reference backend. In a torch without CUDA the served names certainly cannot run, so guards fall back;
a torch with CUDA may find a driver later."""
import torch
import sgl_kernel
from checks import operands, raises


def test_guards_fall_back():
    if torch.version.cuda:
        from sgl_kernel import dsv3_router_gemm

        raises(RuntimeError, "CPU", dsv3_router_gemm, *operands(torch, 1, 256)[:2])
        return
    assert not hasattr(sgl_kernel, "dsv3_router_gemm")
    a, w, _ = operands(torch, 1, 256)
    e = raises(RuntimeError, "torch.ops.sgl_kernel.dsv3_router_gemm cannot run here: sgl_kernel_jit needs CUDA", torch.ops.sgl_kernel.dsv3_router_gemm, torch.empty(1, 256), a, w)
    assert "this torch is built without" in str(e) and not hasattr(torch.ops.sgl_kernel, "dsv3_router_gemm"), e
    e = raises(ImportError, "this torch is built without", lambda: exec("from sgl_kernel.gemm import dsv3_router_gemm"))
    assert type(e).__name__ == "SglKernelImportError"


def test_the_supported_name_says_why():
    import sgl_kernel_jit

    raises(RuntimeError, "CPU", sgl_kernel_jit.dsv3_router_gemm, *operands(torch, 1, 256)[:2])


def test_no_cuda_was_started():
    assert not torch.cuda.is_initialized()
