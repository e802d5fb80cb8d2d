"""A real kernel wheel: what it has is its own, in silence, and what it lacks has an answer, as the catalog says for its
release. Run by kernel_wheels.py without a GPU, by tests/gpu/test_python.py on one."""
import ctypes, glob, importlib, os, re, sys, warnings

import torch
from checks import Skip, assert_close, operands, raises

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The wheel's library asks for NVIDIA's by name: those that pip has put beside torch, or stand-ins.
nvrtc = os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "nvidia/*/lib/libnvrtc.so.*")
for library in glob.glob(nvrtc if DEVICE == "cuda" else os.path.join(sys.argv[-1], "stand_ins/*")):
    ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
with warnings.catch_warnings():
    warnings.simplefilter("error", DeprecationWarning)
    import sgl_kernel
from sgl_kernel_compat._catalog import OPERATORS, PLACES, SYMBOLS


def number(release):
    digits, post = re.fullmatch(r"([\d.]+?)(?:\.post(\d+))?", release).groups()
    return [int(part) for part in digits.split(".")], int(post or 0)


VERSION = number(os.environ["KERNEL_VERSION"])
GEMMS = ("dsv3_router_gemm", "dsv3_fused_a_gemm")
SERVED = [symbol for symbol, facts in SYMBOLS.items() if any(route[0] == "jit" for route in facts["routes"])]
# Kept on CUDA for another platform's sake: functions whose operator is gone.
LEFT_OVER = {name for module, name in PLACES if module == "sgl_kernel.speculative"}


def is_gone(facts):
    return number(facts["first_without"]) <= VERSION


def test_it_is_the_real_one():
    assert sgl_kernel.__version__ == os.environ["KERNEL_VERSION"]
    assert len([name for name in torch._C._dispatch_get_all_op_names() if name.startswith("sgl_kernel::")]) > 100


def test_python_names():
    seen = 0
    for (module, name), symbol in PLACES.items():
        facts = SYMBOLS[symbol]
        try:
            holder = importlib.import_module(module)
        except ModuleNotFoundError:
            assert is_gone(facts), (module, "is missing")
            continue
        seen += 1
        if name in vars(holder):
            assert not is_gone(facts) or name in LEFT_OVER, (module, name, "is there")
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert getattr(holder, name) is vars(holder)[name]
            continue
        assert is_gone(facts), (module, name, "is not there")
        if symbol in SERVED:
            assert getattr(holder, name) is getattr(sgl_kernel, name)
        else:
            raises(AttributeError, f"{module}.{name} is gone", lambda: getattr(holder, name))
            raises(ImportError, f"{module}.{name} is gone", lambda: exec(f"from {module} import {name}"))
    assert seen > 100, seen


def test_operators():
    own = 0
    for name, facts in OPERATORS.items():
        dump = torch._C._dispatch_dump(f"sgl_kernel::{name}")
        ours = "registered at libsgl_kernel_compat.so" in dump or "sgl_kernel_compat/_operators.py" in dump
        # One whose call fails, and one whose call goes to the operator that took its place in this wheel.
        dead = "CompositeExplicitAutograd[alias]" in dump or "registered at <sgl-kernel-compat," in dump
        served = ours and not dead
        assert (served or dead) == is_gone(facts) and served == (is_gone(facts) and facts["id"] in SERVED), (name, dump)
        if not served and not dead:
            own += 1
            kinds = [[str(a.type) for a in schema.arguments] for schema in (getattr(torch.ops.sgl_kernel, name).default._schema,
                                                                           torch._C.parse_schema(f"sgl_kernel::{facts['schema']}"))]
            assert kinds[0] == kinds[1], (name, kinds)
    assert own > 10 or VERSION > number("0.4.7")


def test_leftovers():
    """Of 0.4.8 and newer: they can be imported, and a call says what has become of them."""
    if VERSION < number("0.4.8"):
        raise Skip("this release has the operators")
    from sgl_kernel.speculative import verify_tree_greedy

    raises(RuntimeError, "torch.ops.sgl_kernel.verify_tree_greedy is gone", verify_tree_greedy, *[torch.ones(4, dtype=torch.int32) for _ in range(8)])


def test_results():
    """What this release lacks, computed by this project; on a GPU what it has, too, beside this project's."""
    import sgl_kernel_jit

    gone = [name for name in GEMMS if is_gone(SYMBOLS[name])]
    assert bool(gone) == (VERSION >= number("0.4.5"))
    for name in GEMMS if DEVICE == "cuda" else gone:
        a, w, want = [t.to(DEVICE) for t in operands(torch, 3, 256 if name == "dsv3_router_gemm" else 2112)]
        w = w.t() if name == "dsv3_fused_a_gemm" else w
        for function in (getattr(sgl_kernel, name), getattr(sgl_kernel_jit, name)):
            assert_close(torch, function(a, w), want)
        output = torch.zeros(want.shape, dtype=torch.bfloat16, device=DEVICE)
        getattr(torch.ops.sgl_kernel, name)(output, a, w)
        assert_close(torch, output, want)


def test_bmm_fp8():
    if DEVICE == "cpu" and not is_gone(SYMBOLS["bmm_fp8"]):
        raise Skip("the package's own needs a GPU")
    import sgl_kernel_jit

    a = torch.randn(2, 16, 64, device=DEVICE).to(torch.float8_e4m3fn)
    b = torch.randn(2, 32, 64, device=DEVICE).to(torch.float8_e4m3fn).transpose(1, 2)
    scales = torch.tensor([0.25], device=DEVICE), torch.tensor([0.5], device=DEVICE)
    want = torch.bmm(a.double(), b.double()) / 8
    for function in (sgl_kernel.bmm_fp8, sgl_kernel_jit.bmm_fp8):
        assert_close(torch, function(a, b, *scales, torch.bfloat16), want)
