#!/usr/bin/env python3
"""The scanner, the audit, doctor and explain know their library from the catalog alone: they are run with the catalog of another
library (tests/catalog/data/acme_ops.yaml), and with this project's own under another name, on cases of tests/cases renamed alike."""
import json, os, pathlib, re, shutil, subprocess, sys
from elf_files import compiled
from tool import TOOL, Tree, contains, equal, main, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
CATALOG = ROOT / "tests" / "catalog" / "data" / "acme_ops.yaml"
ARGS = ["--catalog", CATALOG]
PYTHON = """import importlib, torch
from acme_ops import scale_rows
from acme_ops.rows import gather_rows
import acme_ops.rows as rows
gather_rows(x, y)
torch.ops.acme.scale_rows_out(y, x, 2.0)
rows.scale_rows(x)
getattr(importlib.import_module("acme_ops.rows"), "scale_rows")
torch.library.impl("acme::pack_rows", "CPU")
"""
CXX = """#include "acme_ops.h"
void f(at::Tensor &a, const at::Tensor &b) {
  scale_rows(a, b, 2.0);
  acme::bits::pack_rows(b, a, 8);
  other::pack_rows(b, a, 8);
}
TORCH_LIBRARY_FRAGMENT(acme, m) { m.def("pack_rows(Tensor x, Tensor! bits, int width) -> ()"); }
"""
NOT_OURS = """from sgl_kernel import dsv3_router_gemm, scale_rows
import sgl_kernel, torch
torch.ops.sgl_kernel.bmm_fp8(1)
sgl_kernel.scale_rows(1)
"""
DECLARED = """namespace at { class Tensor; }
namespace acme { namespace bits { void pack_rows(const at::Tensor &x, at::Tensor &bits, long width)%s } }
void scale_rows(at::Tensor &out, const at::Tensor &x, double factor)%s
"""
USER = DECLARED % (";", ";") + 'void f(at::Tensor &a) { acme::bits::pack_rows(a, a, 1); scale_rows(a, a, 1.0); }\nconst char *text = "acme::scale_rows_out";\n'


def test_scan():
    files = {"a.py": PYTHON, "b.cc": CXX, "CMakeLists.txt": "add_library(x bits/pack_rows.cu)\n", "run.sh": "pytest acme/tests/test_pack_rows.py\n",
             "requirements.txt": "acme-ops==2.2\n", "other.py": NOT_OURS, "notes.md": "acme_ops.scale_rows\n"}
    with Tree(files) as tree:
        done = tree.run("scan", "--changed", "--format", "json", *ARGS, ".")
        log = json.loads(done.out)
        have = [f"{f['path']}:{f['line']}:{f['column']} {f['symbol']}" for f in log["findings"]]
        equal(sorted(have), sorted(["CMakeLists.txt:1:20 pack_rows", "a.py:2:22 scale_rows", "a.py:5:1 changed:gather_rows", "a.py:6:16 scale_rows", "a.py:7:6 scale_rows",
                                    "a.py:8:52 scale_rows", "a.py:9:27 pack_rows", "b.cc:3:3 scale_rows", "b.cc:4:15 pack_rows", "b.cc:7:42 pack_rows",
                                    "run.sh:1:19 pack_rows", "notes.md:1:10 scale_rows"]))
        contains(tree.run("scan", *ARGS, ".").err, "checking against kernel 2.2 (requirements.txt:1: acme-ops==2.2)")
        contains(tree.run("scan", *ARGS, "b.cc").out, "pack_rows left acme_ops in 2.1; there is no replacement: nobody used it")
        before = {name: tree.get(name) for name in files}
        tree.run("fix", *ARGS, ".")
        equal({name: tree.get(name) for name in files}, before)  # nothing of another library may be rewritten to


def test_the_built_in_catalog_does_not_know_it():
    with Tree({"a.py": PYTHON, "b.cc": CXX}) as tree:
        equal(json.loads(tree.run("scan", "--kernel", "0.4.10", "--to", "jit", "--format", "json", ".").out)["findings"], [])


def test_audit():
    with Tree({"user.so": compiled(USER), "lib.so": compiled(DECLARED % (" {}", " {}"))}) as tree:
        rows = tree.run("audit", *ARGS, "--format", "tsv", ".").out.splitlines()
        equal(sorted(rows), ["lib.so\tpack_rows\tprovides", "lib.so\tscale_rows\tprovides", "user.so\tpack_rows\tneeds", "user.so\tscale_rows\tneeds", "user.so\tscale_rows\tstring"])
        contains(tree.run("audit", *ARGS, "user.so").out, "removed scale_rows (_Z10scale_rowsRN2at6TensorERKS0_d): left acme_ops in 2.2 (C++ function, #40, 2026-05-02); "
                 "no C++ replacement; in Python broad.rows.scale")
        equal(tree.run("audit", "--kernel", "0.4.10", "--format", "tsv", ".").out, "")


def test_explain():
    for text, part in (("ImportError: cannot import name 'scale_rows' from 'acme_ops'", "It is missing from release 2.2 on."),
                       ("AttributeError: '_OpNamespace' 'acme' object has no attribute 'pack_rows'", "torch knows no such operator"),
                       ("RuntimeError: operator acme::pack_rows does not exist", "torch knows no such operator"),
                       ("AttributeError: module 'acme_ops' has no attribute 'scale_rows'", "Python asks the installed kernel package for a name"),
                       ("undefined symbol: _ZN4acme4bits9pack_rowsERKN2at6TensorERS2_l", "pack_rows: Packs the rows of a matrix to bits."),
                       ("No module named 'acme_ops'", "It comes with acme-ops, acme-ops-cpu"),
                       ("No module named '_acme'", "The compiled part of the kernel package did not load."),
                       ("gather_rows", "(x, index, axis, out=None)")):
        done = run("explain", *ARGS, text)
        contains(done.out, part)
    for text in ("AttributeError: '_OpNamespace' 'sgl_kernel' object has no attribute 'pack_rows'", "No module named 'sgl_kernel'", "dsv3_router_gemm"):
        equal((text, run("explain", *ARGS, text).returncode), (text, 1))


def test_doctor():
    with Tree({"lib/python3.11/site-packages/torch-2.8.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0\n\n"}) as tree:
        out = run("doctor", *ARGS, tree.path).out
        contains(out, "acme_ops")
        contains(out, "pip install acme-ops (CUDA, ROCm) or acme-ops-cpu (CPU), in the release that the caller pins")
        assert "sgl_kernel" not in re.sub(r"sgl_kernel_(jit|compat)", "", out), out
        contains(run("doctor", tree.path).out, "pip install sglang-kernel (CUDA, ROCm, MUSA, from 0.4.0) or sgl-kernel (CUDA, ROCm, MUSA, before 0.4.0) or ")


def renamed(data):
    """Other names for the package, the folder of its sources and its wheels, of the same length and with the same place in any order."""
    data = re.sub(rb"sgl_kernel(?!_jit|_compat)", b"sgm_kernel", data)
    data = re.sub(rb"sgl-kernel(?!-compat)", b"sgm-kernel", data)
    return re.sub(rb"sglang([-_])kernel", rb"sgmang\1kernel", data)


def test_cases_under_another_name():
    """Every seventh case: all of them take a minute. What is expected is renamed too, and nothing else."""
    cases = sorted(path.parent for path in (ROOT / "tests" / "cases").rglob("expected.tsv"))[::7]
    assert len(cases) > 30
    with Tree({"catalog.yaml": renamed((ROOT / "catalog" / "removals.yaml").read_bytes())}) as tree:
        for case in cases:
            for path in case.rglob("*"):
                target = tree.path / os.fsdecode(renamed(os.fsencode(path.relative_to(ROOT / "tests"))))
                target.parent.mkdir(parents=True, exist_ok=True)
                if path.is_symlink():
                    target.symlink_to(os.fsdecode(renamed(os.fsencode(os.readlink(path)))))
                elif path.is_file():
                    target.write_bytes(renamed(path.read_bytes()))
                    shutil.copymode(path, target)
        tool = tree.path / "tool"
        tool.write_text(f'#!/bin/sh\ncommand=$1\nshift\nexec "{TOOL}" "$command" --catalog "{tree.path}/catalog.yaml" "$@"\n')
        tool.chmod(0o755)
        done = subprocess.run([sys.executable, ROOT / "tests" / "cases" / "run.py", tool, tree.path / "cases"], capture_output=True, text=True, timeout=600)
        equal((done.stdout.splitlines() or [done.stderr])[-1:], [f"{len(cases)} passed, 0 failed"])


def test_no_name_in_the_code():
    """In strings of the code; the examples of two helps are of the built-in catalog."""
    texts = re.compile(r'"(?:[^"\\\n]|\\.)*"')
    names = re.compile(r"sgl[-_]kernel(?![-_](?:jit|compat))|sglang[-_]kernel|common_ops|" + "|".join(re.findall(r"(?m)^  - id: (\w{8,})$", (ROOT / "catalog" / "removals.yaml").read_text())))
    found = []
    for file in sorted((ROOT / "scanner").glob("*.[ch]")):
        code = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.S)
        found += [f"{file.name}: {text}" for text in texts.findall(code) if names.search(text) and not text.startswith('"  sgl-migrate ')]
    equal(found, [])


main(globals())
