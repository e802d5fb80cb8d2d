"""The wheel's own library is missing: all forms say so, with its path, and the rest works."""
import torch
import sgl_kernel
from checks import operands, raises


def test_first_cause_is_told():
    missing = "libsgl_kernel_jit.so.0"
    assert sgl_kernel.fp8_scaled_mm() == "fp8_scaled_mm" and not hasattr(sgl_kernel, "dsv3_router_gemm")
    for text in ("cannot load", missing, "No such file"):
        raises(ImportError, text, lambda: exec("from sgl_kernel import dsv3_router_gemm"))
    a, w, _ = operands(torch, 1, 256)
    raises(RuntimeError, missing, torch.ops.sgl_kernel.dsv3_router_gemm, torch.empty(1, 256), a, w)
    raises(ImportError, missing, lambda: exec("import sgl_kernel_jit"))
