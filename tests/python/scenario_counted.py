"""An old wheel, no stage, and statistics: its Python names are counted where they are asked for, in silence; what is not
seen is said to be not counted."""
import glob, importlib, inspect, json, os, pathlib, pickle, subprocess, sys, tempfile, types, warnings

warnings.simplefilter("error")
warnings.filterwarnings("ignore", "Failed to initialize NumPy", UserWarning)  # a torch without it
import torch
import sgl_kernel
from checks import operands, raises
from unittest import mock

import sgl_kernel_compat
from sgl_kernel_compat import _answers

REAL = vars(sgl_kernel.gemm)["dsv3_router_gemm"]


def lines(folder):
    (file,) = glob.glob(f"{folder}/*.jsonl")
    return [json.loads(line) for line in pathlib.Path(file).read_text().splitlines()[1:]]


def counted():
    """{line of this file: calls}"""
    with tempfile.TemporaryDirectory() as folder:
        sgl_kernel_compat.write_statistics(folder)
        return {use["caller"]["line"]: use["calls"] for use in lines(folder) if use.get("face") == "python" and use["caller"]["file"] == __file__}


def test_accesses():
    def f():
        for _ in range(3):
            assert sgl_kernel.dsv3_router_gemm is REAL
            from sgl_kernel.gemm import dsv3_router_gemm
            assert dsv3_router_gemm is getattr(sgl_kernel, "dsv3_router_gemm") is REAL
        sgl_kernel.gemm.uses_it()

    before = counted()
    f()
    line = f.__code__.co_firstlineno
    assert {n: calls for n, calls in counted().items() if n not in before} == {line + n: {"silent": 3} for n in (2, 3, 4)}, counted()


def test_nothing_else_has_changed():
    assert isinstance(sgl_kernel, types.ModuleType) and inspect.ismodule(sgl_kernel.gemm) and "dsv3_router_gemm" in dir(sgl_kernel)
    assert pickle.loads(pickle.dumps(sgl_kernel.dsv3_router_gemm)) is REAL and pickle.loads(pickle.dumps(REAL)) is REAL
    assert inspect.getmodule(REAL) is sgl_kernel.gemm and "out_dtype" in inspect.getsource(sgl_kernel.dsv3_router_gemm)
    assert dict(inspect.getmembers(sgl_kernel))["dsv3_router_gemm"] is REAL
    with mock.patch("sgl_kernel.gemm.dsv3_router_gemm", 7):
        assert sgl_kernel.gemm.dsv3_router_gemm == 7 == sgl_kernel.gemm.uses_it() and sgl_kernel.dsv3_router_gemm is REAL
    del sgl_kernel.dsv3_router_gemm
    assert sgl_kernel.gemm.dsv3_router_gemm is REAL and "dsv3_router_gemm" not in vars(sgl_kernel)
    sgl_kernel.dsv3_router_gemm = REAL
    scope = {}
    exec("from sgl_kernel import *", scope)
    assert scope["dsv3_router_gemm"] is REAL
    assert importlib.reload(sgl_kernel.gemm).dsv3_router_gemm is vars(sgl_kernel.gemm)["dsv3_router_gemm"] is not REAL
    sgl_kernel.gemm.dsv3_router_gemm = REAL


def test_compiled():
    a, w, _ = operands(torch, 2, 256)

    def f(a, w):
        return sgl_kernel.dsv3_router_gemm(a, w) + sgl_kernel.gemm.dsv3_router_gemm(a, w)

    compiled = torch.compile(f, fullgraph=True, backend="eager")
    for _ in range(2):
        assert (compiled(a, w) == 84).all()
    before = counted()
    for _ in range(5):
        assert (compiled(a, w) == 84).all()
    assert counted() == before  # guards ask each time, and are not uses


def test_what_is_not_counted():
    """Its operator. Where no statistics are kept, its Python names are as they were, and not counted either, until a policy
    speaks of them."""
    with tempfile.TemporaryDirectory() as folder:
        sgl_kernel_compat.write_statistics(folder)
        assert [line for line in lines(folder) if "not_counted" in line] == [{"not_counted": "dsv3_router_gemm", "faces": ["operator"]}]
    code = f"""import sys; sys.path[:0] = {sys.argv[2:]}
import torch, sgl_kernel, sgl_kernel_compat
assert type(sgl_kernel) is type(sys)
sgl_kernel.dsv3_router_gemm
sgl_kernel_compat.write_statistics(sys.argv[1] + "/before")
sgl_kernel_compat.set_stage("dsv3_router_gemm", "silent")
sgl_kernel.dsv3_router_gemm
sgl_kernel_compat.write_statistics(sys.argv[1] + "/after")"""
    environment = {name: value for name, value in os.environ.items() if name != "SGL_KERNEL_COMPAT_STATS"}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", code, folder], env=environment, check=True)
        found = {when: lines(f"{folder}/{when}") for when in ("before", "after")}
    assert found["before"] == [{"not_counted": "dsv3_router_gemm", "faces": ["operator", "python"]}], found
    assert [line["calls"] for line in found["after"] if "symbol" in line] == [{"silent": 1}], found
    assert [line["faces"] for line in found["after"] if "not_counted" in line] == [["operator"]], found


def test_a_stage_under_a_star():
    """All names are asked for, wanted or not: one that is forbidden fails when it is called, and that is a use."""
    sgl_kernel_compat.set_stage("dsv3_router_gemm", "error")
    before, scope = counted(), {"__name__": "user"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec("from sgl_kernel import *", scope)
    assert counted() == before
    a, w, _ = operands(torch, 2, 256)
    call = lambda: scope["dsv3_router_gemm"](a, w)
    raises(ImportError, "its stage is error (set_stage, ", call)
    assert {n: calls for n, calls in counted().items() if n not in before} == {call.__code__.co_firstlineno: {"error": 1}}
    sgl_kernel_compat.set_stage("dsv3_router_gemm", "silent")
    assert (call() == 42).all()


def test_a_refused_access_is_one_use():
    """Python asks the module's __getattr__ too when a property has raised AttributeError."""
    sgl_kernel_compat.set_stage("dsv3_router_gemm", "error")

    def from_import():
        from sgl_kernel import dsv3_router_gemm

    accesses = [
        lambda: sgl_kernel.dsv3_router_gemm,
        lambda: sgl_kernel.gemm.dsv3_router_gemm,
        lambda: getattr(sgl_kernel, "dsv3_router_gemm"),
        from_import,
    ]
    before = counted()
    for access in accesses:
        e = raises((AttributeError, ImportError), "its stage is error (set_stage, ", access)
        assert "dsv3_router_gemm is deprecated" in str(e), e
    asks = [lambda: hasattr(sgl_kernel, "dsv3_router_gemm"), lambda: getattr(sgl_kernel, "dsv3_router_gemm", False), lambda: hasattr(sgl_kernel.gemm, "dsv3_router_gemm")]
    for ask in asks:
        assert ask() is False
    found = {n: calls for n, calls in counted().items() if n not in before}
    assert found == {f.__code__.co_firstlineno + (f is from_import): {"error": 1} for f in accesses} | {asks[0].__code__.co_firstlineno: {"error": 3}}, found
    sgl_kernel_compat.set_stage("dsv3_router_gemm", "silent")
    assert sgl_kernel.dsv3_router_gemm is REAL


def test_a_kernel_that_cannot_run_is_one_use():
    access = lambda: sgl_kernel.dsv3_router_gemm
    before = counted()
    with mock.patch.dict(_answers._found, clear=True), mock.patch.object(_answers, "why_not_jit", lambda: "no GPU here"):
        sgl_kernel_compat.set_policy("serve dsv3_router_gemm = jit")
        raises(AttributeError, "cannot run here: no GPU here; ", access)
    sgl_kernel_compat.set_policy("serve dsv3_router_gemm = auto")
    assert {n: calls for n, calls in counted().items() if n not in before} == {access.__code__.co_firstlineno: {"tombstone": 1}}, counted()
    assert access() is REAL


def test_a_process_that_uses_nothing():
    with tempfile.TemporaryDirectory() as folder:
        code = f"import sys; sys.path[:0] = {sys.argv[2:]}; import torch, sgl_kernel"
        subprocess.run([sys.executable, "-c", code], env=dict(os.environ, SGL_KERNEL_COMPAT_STATS=folder), check=True)
        assert [line["not_counted"] for line in lines(folder)] == ["dsv3_router_gemm"]
