"""SGL_KERNEL_COMPAT=0: nothing happens, also when the package is imported."""
import sys

import torch
import sgl_kernel
from checks import raises


def test_nothing():
    assert "sgl_kernel_compat" not in sys.modules
    import sgl_kernel_compat

    assert not hasattr(sgl_kernel, "dsv3_router_gemm") and not hasattr(torch.ops.sgl_kernel, "dsv3_router_gemm")
    assert not hasattr(sgl_kernel, "__getattr__")
    e = raises(ImportError, "cannot import name", lambda: exec("from sgl_kernel import dsv3_router_gemm"))
    assert type(e) is ImportError
