"""An old wheel that has the router, and policies: the pin of test_package.py's environment, then set_policy."""
import sgl_kernel
import torch
from checks import assert_close, operands, raises, warned

import sgl_kernel_compat
import sgl_kernel_jit

REAL = vars(sgl_kernel.gemm)["dsv3_router_gemm"]
set_policy, get_stage = sgl_kernel_compat.set_policy, sgl_kernel_compat.get_stage


def operator(name, n):
    a, w, want = operands(torch, 2, n)
    output = torch.zeros(2, n, dtype=torch.bfloat16)
    getattr(torch.ops.sgl_kernel, name)(output, a, w.t())
    return output, want


def test_pin():
    """default = 0.4.4, which had both: no warning of the one that the wheel has nor of the one that is served."""
    assert get_stage("dsv3_router_gemm") == get_stage("dsv3_fused_a_gemm") == ("silent", "SGL_KERNEL_COMPAT_POLICY: default = 0.4.4")
    assert get_stage("awq_marlin_repack")[1] == "the catalog"  # gone before it
    f, texts = warned(lambda: (sgl_kernel.dsv3_router_gemm, sgl_kernel.dsv3_fused_a_gemm))
    assert f[0] is REAL and texts == [] and warned(lambda: operator("dsv3_fused_a_gemm", 2112))[1] == []


def test_stage_of_an_operator_that_was_called():
    assert_close(torch, *operator("dsv3_fused_a_gemm", 2112))
    set_policy("dsv3_fused_a_gemm = tombstone")
    e = raises(RuntimeError, "; its stage is tombstone (set_policy, ", operator, "dsv3_fused_a_gemm", 2112)
    assert __file__ in str(e), e
    raises(ImportError, "its stage is tombstone", lambda: exec("from sgl_kernel import dsv3_fused_a_gemm"))
    assert not hasattr(sgl_kernel, "dsv3_fused_a_gemm")
    set_policy("extend dsv3_fused_a_gemm until 2001-12-31 reason never mind")
    raises(AttributeError, "the extension until 2001-12-31 has expired: never mind", lambda: sgl_kernel.dsv3_fused_a_gemm)
    set_policy("dsv3_fused_a_gemm = warn")
    assert len(warned(lambda: sgl_kernel.dsv3_fused_a_gemm)[1]) == 1
    set_policy("extend dsv3_fused_a_gemm until 2999-12-31 reason see #12")
    assert get_stage("dsv3_fused_a_gemm")[0] == "silent" and get_stage("dsv3_fused_a_gemm")[1].endswith(": extended until 2999-12-31: see #12")
    assert_close(torch, *operator("dsv3_fused_a_gemm", 2112))


def test_kill_switch():
    a, w, want = operands(torch, 2, 256)
    assert sgl_kernel.dsv3_router_gemm is REAL
    set_policy("serve dsv3_router_gemm = jit")
    f, texts = warned(lambda: sgl_kernel.dsv3_router_gemm)
    assert f is not REAL and texts == []
    assert_close(torch, f(a, w), want)
    from sgl_kernel.gemm import dsv3_router_gemm

    assert dsv3_router_gemm is f and sgl_kernel.gemm.uses_it() is REAL
    set_policy("serve dsv3_router_gemm = old")
    assert sgl_kernel.dsv3_router_gemm is REAL
    set_policy("serve dsv3_fused_a_gemm = old")
    raises(AttributeError, "the policy serves it by an old library only (set_policy, ", lambda: sgl_kernel.dsv3_fused_a_gemm)
    raises(RuntimeError, "and none is loaded that has it", operator, "dsv3_fused_a_gemm", 2112)
    set_policy("serve * = auto")
    assert sgl_kernel.dsv3_router_gemm is REAL and callable(sgl_kernel.dsv3_fused_a_gemm)


def test_reference():
    sgl_kernel_jit.set_backend("auto")
    try:
        raises(RuntimeError, "must be on a CUDA device", operator, "dsv3_fused_a_gemm", 2112)
        set_policy("serve dsv3_fused_a_gemm = reference")
        assert_close(torch, *operator("dsv3_fused_a_gemm", 2112))
        a, w, want = operands(torch, 2, 2112)
        assert_close(torch, sgl_kernel.dsv3_fused_a_gemm(a, w.t()), want)
    finally:
        set_policy("serve * = auto")
        sgl_kernel_jit.set_backend("reference")


def test_faults():
    raises(ValueError, "set_policy: line 2: 'dsv3_router' is no deleted name", set_policy, "dsv3_router_gemm = error\ndsv3_router = error")
    assert get_stage("dsv3_router_gemm")[0] == "silent"
    set_policy("deny dsv3_router_gemm")
    raises(ValueError, "dsv3_router_gemm is denied (set_policy, ", set_policy, "dsv3_router_gemm = warn")
    raises(ValueError, "set_stage: line 1: dsv3_router_gemm is denied", sgl_kernel_compat.set_stage, "dsv3_router_gemm", "warn")
    raises(ImportError, "its stage is error (set_policy, ", lambda: exec("from sgl_kernel import dsv3_router_gemm"))
    assert sgl_kernel.gemm.uses_it() is REAL
