#!/usr/bin/env python3
"""explain: every form of every name, the usual messages, and what is not known."""
import re
from pathlib import Path
from tool import contains, equal, main, run

CATALOG = Path(__file__).resolve().parents[2] / "catalog" / "removals.yaml"
DATA = CATALOG.parent.parent / "tests" / "catalog" / "data"
NAME = "dsv3_router_gemm"
MANGLED = "_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_"


def explained(*text):
    done = run("explain", *text)
    equal((text, done.returncode, done.err), (text, 0, ""))
    return done.out


def names(*text):
    out = explained(*text)
    return re.findall(r"^  (\w+): ", out, re.M) if "one by one" in out else re.findall(r"^(\w+): .*\n\n(?:what the|what happened)", out, re.M)


def test_forms_of_a_name():
    for text in (NAME, f"sgl_kernel.{NAME}", f"from sgl_kernel import {NAME}", f"torch.ops.sgl_kernel.{NAME}(a, b)", f"sgl_kernel::{NAME}", MANGLED,
                 f"{NAME}(at::Tensor&, at::Tensor const&, at::Tensor const&)", f"::{NAME}(out, a, b);", "invokeRouterGemmFloatOutput",
                 "csrc/gemm/dsv3_router_gemm_entry.cu", "dsv3_router_gemm_entry.cu", "sgl-kernel/tests/test_dsv3_router_gemm.py", "sglang.jit_kernel.dsv3_router_gemm"):
        equal((text, names(text)), (text, [NAME]))


def test_every_name_of_the_catalog():
    ids = re.findall(r"^  - id: (\S+)$", CATALOG.read_text(), re.M)
    equal(len(ids) > 80, True)
    for i in range(0, len(ids), 4):  # four are told in full
        equal(names(*ids[i:i + 4]), ids[i:i + 4])


def test_messages():
    for text, cause in (
        (f"ImportError: cannot import name '{NAME}' from 'sgl_kernel' (/usr/lib/python3/site-packages/sgl_kernel/__init__.py)", "no longer exports. The kernel is newer than the code. It is missing from release 0.4.5 on.\n"),
        (f"AttributeError: module 'sgl_kernel' has no attribute '{NAME}'", "no longer exports"),
        (f"AttributeError: module 'sgl_kernel.gemm' has no attribute '{NAME}'", "no longer exports"),
        (f"AttributeError: '_OpNamespace' 'sgl_kernel' object has no attribute '{NAME}'", "torch knows no such operator"),
        (f"RuntimeError: No such operator sgl_kernel::{NAME}", "torch knows no such operator"),
        (f"operator sgl_kernel::{NAME} does not exist", "torch knows no such operator"),
        (f"ImportError: /a/b.so: undefined symbol: {MANGLED}", "compiled against an older kernel"),
        (f"b.so: undefined symbol: {MANGLED}, version X", "compiled against an older kernel"),
        (f"undefined symbol: {NAME}(at::Tensor&, at::Tensor const&, at::Tensor const&)", "compiled against an older kernel"),
        (f"/usr/bin/ld: x.o: in function `main':\nx.cc:(.text+0x2): undefined reference to `{NAME}(at::Tensor&, at::Tensor const&, at::Tensor const&)'", "library that is linked"),
        (f"x.cc:3:3: error: use of undeclared identifier '{NAME}'", "header of the installed kernel"),
        (f'x.cu(3): error: identifier "{NAME}" is undefined', "header of the installed kernel"),
        ("ModuleNotFoundError: No module named 'sglang.jit_kernel.dsv3_router_gemm'", "The module left"),
        ("CMake Error: Cannot find source file:\n\n  csrc/gemm/dsv3_router_gemm_entry.cu", "a file that was deleted"),
        ("cc1plus: fatal error: csrc/gemm/dsv3_router_gemm_entry.cu: No such file or directory", "what happened"),
        ("ERROR: file or directory not found: sgl-kernel/tests/test_dsv3_router_gemm.py", "a file that was deleted"),
        (f"cannot import name \u2018{NAME}\u2019 from \u2018sgl_kernel\u2019", "no longer exports"),
    ):
        equal((text, names(text)), (text, [NAME]))
        contains(explained(text), cause)


def test_a_traceback():
    text = f'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    from sgl_kernel import {NAME}, bmm_fp8\nImportError: cannot import name \'bmm_fp8\' from \'sgl_kernel\''
    equal(names(text), ["bmm_fp8"])  # the message says which
    equal(names(f"{NAME} bmm_fp8 {NAME}"), [NAME, "bmm_fp8"])


def test_modules():
    have = names("No module named 'sgl_kernel.memory'")
    equal("set_kv_buffer_kernel" in have, True)
    out = explained("ModuleNotFoundError: No module named 'sglang.jit_kernel'")
    contains(out, "removed names; explain them one by one:\n")
    contains(out, f"  {NAME}: ")
    equal("cannot import" in out, False)


def test_torch_itself():
    out = explained("ImportError: sgl_kernel/common_ops.abi3.so: undefined symbol: _ZNK3c106SymInt6sym_neERKS0_")
    contains(out, "built for another torch release")
    equal(NAME in out, False)


def test_before_and_after():
    out = explained(NAME)
    for part in (f"  before:\n    from sgl_kernel import {NAME}\n", f"  after, with --to jit:\n    from sgl_kernel_jit import {NAME}\n",
                 "  after, with --to sglang@0.5.17 up to but not including 0.5.20:\n    from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm\n",
                 "    from sglang.kernels.ops.gemm.tiny_gemm import tiny_gemm_bf16 as dsv3_router_gemm\n    # arguments: hidden_states is now x, router_weights is now w\n",
                 '    #include "sgl_kernel_jit/torch.h"\n    sgl_kernel_jit::dsv3_router_gemm(...)', "torch.ops.sgl_kernel.dsv3_router_gemm\n",
                 "Python export (CUDA): last in 0.4.4, gone from 0.4.5.\n", "fix rewrites those that are safe to rewrite"):
        contains(out, part)
    contains(explained("bmm_fp8"), "after: there is no C++ replacement")


def test_unknown():
    for text, word, near in (("dsv3_router_gem", "dsv3_router_gem", [NAME]), ("cannot import name 'bmm_fp9' from 'sgl_kernel'", "bmm_fp9", ["bmm_fp8"]),
                             ("numpy_is_fine_here", "numpy_is_fine_here", []), ("hello", "hello", []), ("x" * 5000, "x" * 5000, []), ("bad\x1b[31m", "bad", [])):
        done = run("explain", text)
        equal((text, done.returncode, done.out), (text, 1, ""))
        head, _, suggested = done.err.strip().partition("; spelt alike: ")
        equal((head, suggested.split(", ")[:1] if suggested else []), (f"sgl-migrate: '{word}' is no removed name", near))
    equal((run("explain", "...").returncode, run("explain", "...").err), (1, "sgl-migrate: the text has no name\n"))


def test_usage():
    for args, says in ((["explain"], "explain needs an error message or a name"), (["explain", "--to", "jit"], "unknown option --to"), (["explain", "--catalog", "none", "x"], "none: ")):
        done = run(*args)
        equal((args, done.returncode, done.out, done.err.count("\n")), (args, 8, "", 1))
        contains(done.err, f"sgl-migrate: {says}")
    contains(run("explain", "-h").out, "usage: sgl-migrate explain ")
    contains(explained("--catalog", str(DATA / "small.yaml"), "zeta"), "zeta: ")


main(globals())
