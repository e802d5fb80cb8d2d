"""No torch: guards, advice, and the functions of other libraries that the catalog routes to."""
import importlib.util, inspect, sys

import sgl_kernel

sys.modules["sgl_kernel.utils"], sys.modules["sgl_kernel.memory"] = None, object()  # as tests of others do
import sgl_kernel_compat

from checks import raises, warned

assert not {"torch", "ctypes"} & set(sys.modules), "the import needs no torch and no ctypes"


def test_served_names_need_torch():
    assert not hasattr(sgl_kernel, "dsv3_router_gemm")
    raises(ImportError, "No module named 'torch'", lambda: exec("from sgl_kernel import dsv3_router_gemm"))


def test_tombstones_do_not_fool_guards():
    raises(sgl_kernel_compat.SglKernelAttributeError, "there is no replacement", lambda: sgl_kernel.mscclpp_allreduce)
    for place in ("sgl_kernel", "sgl_kernel.moe"):
        e = raises(sgl_kernel_compat.SglKernelImportError, f"{place}.moe_fused_gate is gone", lambda: exec(f"from {place} import moe_fused_gate"))
        assert "sglang.kernels.ops.moe.moe_fused_gate" in str(e) and "last release with it is 0.4.4" in str(e), e
        assert getattr(sys.modules[place], "moe_fused_gate", None) is None
    # A statement that needs a wide argument in the byte code.
    body = "".join(f"x{i} = {i}\n" for i in range(300)) + "from sgl_kernel import kept, moe_fused_gate"
    raises(sgl_kernel_compat.SglKernelImportError, "moe_fused_gate", lambda: exec(body, {}))
    assert importlib.util.find_spec("sgl_kernel.allreduce") is None
    e = raises(ModuleNotFoundError, "No module named 'sgl_kernel.allreduce'", lambda: exec("from sgl_kernel.allreduce import custom_reduce"))
    assert type(e) is sgl_kernel_compat.SglKernelModuleNotFoundError and e.name == "sgl_kernel.allreduce"
    assert "sgl_kernel has dropped custom_reduce in 0.0.8 (#5079), the last release with it is 0.0.7; use sgl_kernel.all_reduce" in str(e), e
    raises(ModuleNotFoundError, "custom_reduce", lambda: exec("import sgl_kernel.allreduce"))
    e = raises(ImportError, "cannot import name 'allreduce'", lambda: exec("from sgl_kernel import allreduce"))
    assert type(e) is ImportError  # Python has asked the package for a name


def test_a_package_in_the_middle_of_its_import():
    """What it will have is not ours to give."""
    sgl_kernel.__spec__._initializing = True
    try:
        e = raises(AttributeError, "has no attribute 'bmm_fp8'", lambda: sgl_kernel.bmm_fp8)
        assert type(e) is AttributeError
    finally:
        sgl_kernel.__spec__._initializing = False
    assert sgl_kernel.bmm_fp8


def test_library_with_the_same_parameters():
    (f, again), texts = warned(lambda: (sgl_kernel.bmm_fp8, sgl_kernel.gemm.bmm_fp8))
    assert f is again and len(texts) == 2 and "use sgl_kernel_jit.bmm_fp8" in texts[0][1], texts
    assert f(1, 2, 3, 4, dtype=5) == (1, 2, 3, 4, 5, None, "cublas") and f(1, 2, 3, 4, 5, 6)[5] == 6
    assert list(inspect.signature(f).parameters) == ["A", "B", "A_scale", "B_scale", "dtype", "out"]
    # By name, not by place; and the module sgl_kernel.sampling is one that this package has lost.
    from sgl_kernel.sampling import top_k_mask_logits

    assert top_k_mask_logits("logits", 3) == ("logits", 3)


def test_sglang_of_the_right_release():
    from sgl_kernel import hadamard_transform_12n

    assert hadamard_transform_12n("x") == ("x", 1.0) and hadamard_transform_12n("x", scale=2) == ("x", 2)
    # In 0.5.19, but not in this one: what fails to import is the next reason.
    raises(ImportError, "sglang.kernels.ops.quantization.awq_dequantize", lambda: exec("from sgl_kernel import awq_dequantize"))
    raises(ImportError, "before 0.5.17, would have it, 0.5.19 is installed", lambda: exec("from sgl_kernel import awq_marlin_repack"))


def test_same_call_with_another_meaning():
    """What would bind is not called: the text says how the call has to change."""
    from sglang.kernels.ops.moe.moe_fused_gate import moe_fused_gate

    assert moe_fused_gate  # it is here
    for name, note in (("moe_fused_gate", "topk is the third parameter"),):
        for kind, f in ((AttributeError, lambda: getattr(sgl_kernel, name)), (ImportError, lambda: exec(f"from sgl_kernel import {name}"))):
            e = raises(kind, f"sgl_kernel.{name} is gone", f)
            assert note in str(e), e


def test_old_signatures_of_all_names():
    """Of whatever function a name is answered with, if it is."""
    import ast

    from sgl_kernel_compat import _answers
    from sgl_kernel_compat._catalog import SYMBOLS

    class torch:  # defaults are evaluated
        bfloat16, float32 = "bfloat16", "float32"

    served = [symbol for symbol, facts in SYMBOLS.items() if facts["routes"]]
    assert len(served) > 20
    sys.modules["torch"] = torch
    try:
        for symbol in served:
            made = _answers._adapter(symbol, lambda **kw: kw)
            have, want = inspect.signature(made), ast.parse(f"def f{SYMBOLS[symbol]['signature']}: pass").body[0]
            assert list(have.parameters) == [a.arg for a in want.args.args + want.args.kwonlyargs] and made.__name__ == symbol
            defaults = [p.default for p in have.parameters.values() if p.default is not p.empty]
            texts = [ast.unparse(d) for d in want.args.defaults + [d for d in want.args.kw_defaults if d]]
            assert defaults == [eval(text, {"torch": torch}) for text in texts], (symbol, defaults, texts)
            values = list(range(len(have.parameters)))
            assert list(made(*values[: len(want.args.args)], **dict(list(zip(have.parameters, values))[len(want.args.args) :])).values()) == values
            for p in have.parameters.values():
                assert ast.unparse(ast.parse(p.annotation)) == ast.unparse(next(a for a in want.args.args + want.args.kwonlyargs if a.arg == p.name).annotation) \
                    if p.annotation is not p.empty else True
    finally:
        del sys.modules["torch"]


def test_nothing_of_cuda():
    with open("/proc/self/maps") as file:
        assert not [line for line in file if "libcuda" in line or "nvrtc" in line]
