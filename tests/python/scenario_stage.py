"""An old wheel, and a stage for its name: SGL_KERNEL_COMPAT_POLICY of test_package.py, then set_stage."""
import os, warnings
from unittest import mock

for name in os.environ["ORDER"].split():
    __import__(name)
import sgl_kernel
import torch
from checks import assert_close, operands, raises, warned

import sgl_kernel_compat

REAL = vars(sgl_kernel.gemm)["dsv3_router_gemm"]


def use():
    from sgl_kernel import dsv3_router_gemm  # HERE
    from sgl_kernel.gemm import dsv3_router_gemm as other

    assert dsv3_router_gemm is other is sgl_kernel.dsv3_router_gemm is REAL
    return dsv3_router_gemm


def test_warn():
    assert sgl_kernel_compat.get_stage("dsv3_router_gemm") == ("warn", "SGL_KERNEL_COMPAT_POLICY")
    line = use.__code__.co_firstlineno
    f, texts = warned(use)
    assert [n for n, _ in texts] == [line + 1, line + 2, line + 4], texts
    assert texts[0][1].startswith("sgl_kernel.dsv3_router_gemm is deprecated"), texts
    assert warned(use)[1] == []
    a, w, _ = operands(torch, 2, 256)
    assert (f(a, w) == 42).all()  # the original, which no call warns of
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (torch.compile(lambda a, w: f(a, w), fullgraph=True, backend="eager")(a, w) == 42).all()


def test_its_own_code_does_not_see_it():
    assert sgl_kernel.gemm.uses_it() is REAL
    with mock.patch("sgl_kernel.gemm.dsv3_router_gemm", 7):
        assert sgl_kernel.gemm.dsv3_router_gemm == 7 == sgl_kernel.gemm.uses_it()
    assert sgl_kernel.gemm.dsv3_router_gemm is REAL
    assert "dsv3_router_gemm" in dir(sgl_kernel) and sgl_kernel.__name__ == "sgl_kernel"


def test_error():
    sgl_kernel_compat.set_stage("dsv3_router_gemm", "error")
    origin = f"set_stage, {__file__}:{test_error.__code__.co_firstlineno + 1}"
    assert sgl_kernel_compat.get_stage("dsv3_router_gemm") == ("error", origin)
    e = raises(ImportError, f"its stage is error ({origin})", use)
    assert type(e).__name__ == "SglKernelImportError"
    assert not hasattr(sgl_kernel, "dsv3_router_gemm") and not hasattr(sgl_kernel.gemm, "dsv3_router_gemm")
    assert sgl_kernel.gemm.uses_it() is REAL
    sgl_kernel_compat.set_stage("dsv3_router_gemm", "silent")
    assert warned(use)[1] == []


def test_of_a_name_that_is_served():
    """dsv3_fused_a_gemm=error is in the environment."""
    raises(AttributeError, "its stage is error (SGL_KERNEL_COMPAT_POLICY)", lambda: sgl_kernel.dsv3_fused_a_gemm)
    scope = {}
    warned(lambda: exec("from sgl_kernel_compat.old import *", scope))
    assert "dsv3_router_gemm" in scope and "dsv3_fused_a_gemm" not in scope
    a, w, want = operands(torch, 2, 2112)
    output = torch.zeros(2, 2112, dtype=torch.bfloat16)
    e = raises(RuntimeError, "; its stage is error (SGL_KERNEL_COMPAT_POLICY)", torch.ops.sgl_kernel.dsv3_fused_a_gemm, output, a, w.t())
    assert str(e).startswith("the operator torch.ops.sgl_kernel.dsv3_fused_a_gemm is deprecated") and "called from" not in str(e), e
    sgl_kernel_compat.set_stage("dsv3_fused_a_gemm", "silent")
    f, texts = warned(lambda: sgl_kernel.dsv3_fused_a_gemm)
    assert texts == []
    assert_close(torch, f(a, w.t()), want)
    assert warned(lambda: torch.ops.sgl_kernel.dsv3_fused_a_gemm(output, a, w.t()))[1] == []
    assert_close(torch, output, want)


def test_silent_leaves_a_dead_operator_to_others():
    """awq_dequantize=silent is in the environment; gptq_gemm has no stage."""
    exists = lambda name: torch._C._dispatch_has_kernel(f"sgl_kernel::{name}")
    assert exists("gptq_gemm") and not exists("awq_dequantize") and not hasattr(torch.ops.sgl_kernel, "awq_dequantize")

    @torch.library.custom_op("sgl_kernel::awq_dequantize", mutates_args=())
    def awq_dequantize(q: torch.Tensor) -> torch.Tensor:
        return q + 1

    assert hasattr(torch.ops.sgl_kernel, "awq_dequantize") and torch.ops.sgl_kernel.awq_dequantize(torch.ones(1)) == 2


def test_of_unknown_names_and_stages():
    raises(ValueError, "'nothing' is no deleted name", sgl_kernel_compat.set_stage, "nothing", "warn")
    raises(ValueError, "'loud'", sgl_kernel_compat.set_stage, "dsv3_router_gemm", "loud")
    raises(ValueError, "'nothing'", sgl_kernel_compat.get_stage, "nothing")
    assert sgl_kernel_compat.get_stage("moe_fused_gate") == ("tombstone", "the catalog")
