"""Somebody's tests have put something else in torch's place: sgl_kernel can be imported all the same."""
import sys, types

import sgl_kernel_compat

sys.modules["torch"] = types.ModuleType("torch")
import sgl_kernel

from checks import raises


def test_sgl_kernel_is_there():
    assert sgl_kernel.kept == "kept" and sgl_kernel.gemm.kept == "kept"
    assert not hasattr(sgl_kernel, "dsv3_router_gemm")
    raises(ImportError, "dsv3_router_gemm cannot run here: sgl_kernel_jit: no torch is loaded in this process", lambda: exec("from sgl_kernel import dsv3_router_gemm"))
    raises(ImportError, "sgl_kernel.moe_fused_gate is gone", lambda: exec("from sgl_kernel import moe_fused_gate"))
