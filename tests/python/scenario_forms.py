"""Nothing but torch and a newer sgl_kernel is imported: all forms of the old names are served (reference backend)."""
import copy, importlib, inspect, os, pickle, sys, threading
from unittest import mock

import torch
import sgl_kernel
import native_cases
from checks import assert_close, operands, raises, warned

assert "sgl_kernel_compat" in sys.modules  # torch's entry point
SERVED = {"bmm_fp8", "dsv3_fused_a_gemm", "dsv3_router_gemm", *native_cases.ALL}


def test_four_forms_are_one_object():
    from sgl_kernel import dsv3_router_gemm as one
    from sgl_kernel.gemm import dsv3_router_gemm as two

    assert one is two is sgl_kernel.dsv3_router_gemm is sgl_kernel.gemm.dsv3_router_gemm
    assert one is getattr(importlib.import_module("sgl_kernel.gemm"), "dsv3_router_gemm")
    import sgl_kernel.gemm as gemm

    assert gemm.dsv3_fused_a_gemm is sgl_kernel.dsv3_fused_a_gemm
    assert pickle.loads(pickle.dumps(one)) is one and copy.deepcopy(one) is one


def test_results():
    a, w, want = operands(torch, 5, 256)
    assert sgl_kernel.dsv3_router_gemm(a, w).dtype == torch.bfloat16
    assert_close(torch, sgl_kernel.dsv3_router_gemm(a, w), want)
    assert_close(torch, sgl_kernel.dsv3_router_gemm(a, w, out_dtype=torch.float32), want)
    assert_close(torch, sgl_kernel.dsv3_router_gemm(a, w, torch.float32), want)
    a, w, want = operands(torch, 3, 2112)
    assert_close(torch, sgl_kernel.dsv3_fused_a_gemm(a, w.t()), want)
    mine = torch.zeros(3, 2112, dtype=torch.bfloat16)
    assert sgl_kernel.dsv3_fused_a_gemm(a, w.t(), output=mine) is mine
    assert_close(torch, mine, want)


def test_annotations_resolve():
    """Of the functions that are handed out: the types themselves."""
    import typing

    import sgl_kernel_jit

    for name in ("dsv3_router_gemm", "dsv3_fused_a_gemm", "bmm_fp8"):
        for f in (getattr(sgl_kernel, name), getattr(sgl_kernel_jit, name)):
            hints = typing.get_type_hints(f)
            assert hints["return"] is torch.Tensor and hints == f.__annotations__ and inspect.signature(f, eval_str=True) == inspect.signature(f)
            assert set(hints) == {*inspect.signature(f).parameters, "return"}, hints
    assert typing.get_type_hints(sgl_kernel.dsv3_fused_a_gemm)["output"] == typing.Optional[torch.Tensor]
    schema = torch.library.infer_schema(sgl_kernel.dsv3_fused_a_gemm, mutates_args=())
    assert schema == "(Tensor mat_a, Tensor mat_b, Tensor? output=None) -> Tensor", schema
    wrapped = torch.library.custom_op("sgl_kernel_test::router", sgl_kernel.dsv3_router_gemm, mutates_args=())
    a, w, want = operands(torch, 2, 256)
    assert_close(torch, wrapped(a, w), want)


def test_no_tokens():
    none = torch.empty(0, 7168, dtype=torch.bfloat16)
    assert sgl_kernel.dsv3_router_gemm(none, torch.zeros(256, 7168, dtype=torch.bfloat16)).shape == (0, 256)
    assert sgl_kernel.dsv3_fused_a_gemm(none, torch.zeros(2112, 7168, dtype=torch.bfloat16).t()).shape == (0, 2112)


def test_old_signatures():
    from sgl_kernel_compat import _catalog

    for name in ("dsv3_router_gemm", "dsv3_fused_a_gemm"):
        scope = {}
        exec(f"import torch\nfrom typing import Optional\ndef old{_catalog.SYMBOLS[name]['signature']}: pass", scope)
        want, have = (inspect.signature(f, eval_str=True, globals=scope) for f in (scope["old"], getattr(sgl_kernel, name)))
        assert have == want, (have, want)
    assert [p.default for p in inspect.signature(sgl_kernel.dsv3_router_gemm).parameters.values()][2] is torch.bfloat16
    a, w, _ = operands(torch, 1, 256)
    raises(TypeError, "output", sgl_kernel.dsv3_router_gemm, a, w, output=a)
    raises(RuntimeError, "dsv3_router_gemm", sgl_kernel.dsv3_router_gemm, a.float(), w)


def test_warning_at_the_line_of_the_access():
    def access():
        return sgl_kernel.dsv3_router_gemm  # HERE

    line = access.__code__.co_firstlineno + 1
    f, first = warned(access)
    assert first == [(line, "sgl_kernel.dsv3_router_gemm is deprecated, sgl_kernel has dropped it in 0.4.5 (#21531): use sgl_kernel_jit.dsv3_router_gemm")], first
    assert warned(access)[1] == []  # once
    a, w, _ = operands(torch, 1, 256)
    assert warned(lambda: f(a, w))[1] == []  # never in the call

    def statement():
        from sgl_kernel.gemm import dsv3_fused_a_gemm
        from sgl_kernel import dsv3_fused_a_gemm

    _, texts = warned(statement)
    assert [line for line, _ in texts] == [statement.__code__.co_firstlineno + 1, statement.__code__.co_firstlineno + 2], texts


def test_warning_in_code_without_a_module():
    code = compile("\nfrom sgl_kernel import dsv3_router_gemm", "made.py", "exec")
    assert [line for line, _ in warned(lambda: exec(code, {}))[1]] == [2]


def test_silence():
    """Switched off, and on all ranks of a job but the first."""
    uses = []  # each setting asks from code of its own
    for settings, count in (("SGL_KERNEL_COMPAT_WARN=off", 0), ("RANK=1", 0), ("PMIX_RANK=1", 0), ("LOCAL_RANK=2", 0), ("SLURM_LOCALID=3", 0),
                            ("RANK=1 LOCAL_RANK=0", 0), ("MV2_COMM_WORLD_RANK=12", 0), ("RANK=0 LOCAL_RANK=3", 1), ("SLURM_LOCALID=0", 1), ("RANK=", 1)):
        uses.append(eval(compile("lambda: sgl_kernel.dsv3_router_gemm", settings, "eval"), globals()))
        with mock.patch.dict(os.environ, dict(part.split("=") for part in settings.split())):
            assert len(warned(uses[-1])[1]) == count, settings


def test_a_call_from_cxx():
    """It has no line of Python: the C library prints, in the process that warns."""
    import ctypes

    from sgl_kernel_compat import _operators

    call = ctypes.byref(_operators._Warning(call=1, symbol=b"dsv3_router_gemm"))
    assert _operators._hook(call, None) == _operators.PRINT
    with mock.patch.dict(os.environ, {"RANK": "1"}):
        assert _operators._hook(call, None) == _operators.SHOWN


def test_ranks_that_torch_starts():
    """torch.multiprocessing.spawn gives them no variable, but a number. Any other process may be the only one with a use."""
    import multiprocessing

    queue = multiprocessing.get_context("fork").SimpleQueue()
    tell = lambda index: queue.put((index, len(warned(lambda: sgl_kernel.dsv3_router_gemm)[1])))
    torch.multiprocessing.start_processes(tell, nprocs=2, start_method="fork")
    process = multiprocessing.get_context("fork").Process(target=tell, args=("other",))
    process.start()
    process.join()
    assert {queue.get() for _ in range(3)} == {(0, 1), (1, 0), ("other", 1)}


def test_operator():
    a, w, want = operands(torch, 2, 256)
    output = torch.zeros(2, 256)

    def calls():
        for _ in range(2):
            torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w)
        torch.ops.sgl_kernel.dsv3_router_gemm.default(output, a, w)

    _, texts = warned(calls)
    assert [line for line, _ in texts] == [calls.__code__.co_firstlineno + 2], texts
    assert texts[0][1].startswith("torch.ops.sgl_kernel.dsv3_router_gemm is deprecated"), texts
    assert_close(torch, output, want)
    assert hasattr(torch.ops.sgl_kernel, "dsv3_fused_a_gemm") and not hasattr(torch.ops.sgl_kernel, "dsv4_fused_a_gemm")
    assert torch.equal(torch.ops.sgl_kernel.silu_and_mul(torch.ones(1)), torch.full((1,), 2.0))


def test_bmm_fp8():
    """In all forms, on the CPU reference."""
    import sgl_kernel_jit

    a = torch.randn(2, 5, 64).to(torch.float8_e4m3fn)
    b = torch.randn(2, 24, 64).to(torch.float8_e5m2).transpose(1, 2)
    scales = torch.tensor([0.25]), torch.tensor(0.37)
    want = torch.bmm(a.double(), b.double()) * scales[0].double() * scales[1].double()
    close = lambda output: bool(((output.double() - want).abs() <= want.abs() * 2.0**-8 + 2.0**-24).all())
    (f, again), texts = warned(lambda: (sgl_kernel.bmm_fp8, sgl_kernel.gemm.bmm_fp8))
    assert f is again and len(texts) == 2 and "use sgl_kernel_jit.bmm_fp8" in texts[0][1], texts
    for function in (f, sgl_kernel_jit.bmm_fp8):
        for dtype in (torch.bfloat16, torch.float16):
            output = function(a, b, *scales, dtype)
            assert output.dtype == dtype and output.shape == want.shape and close(output)
        output = torch.zeros_like(want, dtype=torch.float16)
        assert function(a, b, *scales, torch.bfloat16, out=output) is output and close(output)
    _, texts = warned(lambda: torch.ops.sgl_kernel.bmm_fp8(a, b, output.zero_(), *scales, torch.empty(0, dtype=torch.uint8), 0))
    assert texts[0][1].startswith("torch.ops.sgl_kernel.bmm_fp8 is deprecated") and close(output), texts
    raises(RuntimeError, "bmm_fp8: A and B must not both be float8_e5m2", f, a.to(torch.float8_e5m2), b, *scales, torch.float16)
    raises(RuntimeError, "bmm_fp8: output must be bfloat16 or float16, got float32", f, a, b, *scales, torch.float32)
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = sgl_kernel_jit.bmm_fp8(torch.empty(2, 5, 64, dtype=torch.float8_e4m3fn), torch.empty(2, 64, 24, dtype=torch.float8_e5m2),
                                      torch.empty(1), torch.empty(()), torch.float16)
        assert fake.shape == (2, 5, 24) and fake.dtype == torch.float16
    compiled = torch.compile(lambda a, b: sgl_kernel_jit.bmm_fp8(a, b, *scales, torch.bfloat16) * 2, fullgraph=True, backend="eager")
    assert close(compiled(a, b) / 2)


def test_what_the_package_has_stays():
    assert sgl_kernel.fp8_scaled_mm() == sgl_kernel.gemm.fp8_scaled_mm() == "fp8_scaled_mm"
    assert sgl_kernel.moe.lazy == "lazy"  # its own __getattr__
    raises(AttributeError, "moe has no nothing", lambda: sgl_kernel.moe.nothing)
    raises(AttributeError, "module 'sgl_kernel' has no attribute 'nothing'", lambda: sgl_kernel.nothing)
    scope = {}
    exec("from sgl_kernel import *", scope)
    assert set(scope) - {"__builtins__"} == {"fp8_scaled_mm", "topk_softmax"}
    assert "dsv3_router_gemm" not in dir(sgl_kernel) and type(sgl_kernel.__loader__).__name__ == "SourceFileLoader"
    assert sgl_kernel.__spec__.loader is sgl_kernel.__loader__
    assert importlib.reload(sgl_kernel.gemm) is sgl_kernel.gemm and sgl_kernel.gemm.dsv3_router_gemm is sgl_kernel.dsv3_router_gemm


def test_mocks_and_assignments():
    real = sgl_kernel.dsv3_router_gemm
    with mock.patch("sgl_kernel.dsv3_router_gemm", return_value=7):
        assert sgl_kernel.dsv3_router_gemm() == 7
    assert sgl_kernel.dsv3_router_gemm is real


def test_threads():
    a, w, want = operands(torch, 2, 256)
    results = []
    threads = [threading.Thread(target=lambda: results.append(sgl_kernel.dsv3_router_gemm(a, w))) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(results) == 8
    for result in results:
        assert_close(torch, result, want)


def test_tombstones():
    assert not hasattr(sgl_kernel, "moe_fused_gate") and not hasattr(sgl_kernel.moe, "moe_fused_gate")
    try:
        from sgl_kernel import fp8_scaled_mm, moe_fused_gate
    except ImportError as e:
        assert type(e).__name__ == "SglKernelImportError" and "0.4.5 (#29997)" in str(e) and "0.4.4" in str(e), e
    else:
        raise AssertionError("imported")


def test_dead_operators():
    """They are as the old ones were for all that does not call them, and their error comes through. Guards do not find
    them, before and after their use."""
    assert not hasattr(torch.ops.sgl_kernel, "scaled_fp4_quant") and hasattr(torch.ops.sgl_kernel, "silu_and_mul")
    op = torch.ops.sgl_kernel.scaled_fp4_quant
    many = [torch.ones(2, requires_grad=True) for _ in range(4)]
    for note in ("the scale factors come back as uint8", "in the swizzled 128x4 layout"):
        raises(RuntimeError, note, op, *many)
    assert op is torch.ops.sgl_kernel.scaled_fp4_quant and getattr(torch.ops.sgl_kernel, "scaled_fp4_quant", None) is None
    guarded = lambda x: x + 1 if hasattr(torch.ops.sgl_kernel, "scaled_fp4_quant") else x * 2
    assert torch.compile(guarded, fullgraph=True, backend="eager")(torch.ones(1)) == 2
    with torch.inference_mode():
        raises(RuntimeError, "scaled_fp4_quant is gone", op, *many)
    for device in ("cpu", "meta"):
        raises(RuntimeError, "scaled_fp4_quant is gone", op, *[torch.ones(2, device=device) for _ in range(4)])
    with mock.patch("torch._subclasses.fake_tensor.log"):
        raises(Exception, "scaled_fp4_quant is gone", torch.compile(lambda *a: op(*a), fullgraph=True, backend="eager"), *many)
    class Model(torch.nn.Module):
        def forward(self, x):
            return x.relu()

    assert torch.export.export(Model(), (torch.ones(1),)).run_decompositions()  # goes through the namespace
    for name in ("moe_fused_gate", "dsv3_fused_a_gemm", "bmm_fp8"):  # old code has fake kernels of its own
        assert eval(f"torch.ops.sgl_kernel.{name}").default._schema.name == f"sgl_kernel::{name}"
        torch.library.register_fake(f"sgl_kernel::{name}")(lambda *args: None)


def test_the_old_functions_without_sgl_kernel():
    from sgl_kernel_compat import old

    assert old.dsv3_router_gemm is sgl_kernel.dsv3_router_gemm
    assert not hasattr(old, "fp8_scaled_mm")
    scope = {}
    exec("from sgl_kernel_compat.old import *", scope)
    assert {name for name in scope if name[0] != "_"} == SERVED == set(dir(old)) == set(old.__all__)
