#!/usr/bin/env python3
"""sgl-migrate catalog diff: wheels and source trees made here, small."""
import io, json, os, struct, subprocess, tarfile, tempfile, zipfile
from pathlib import Path
from tool import Tree, contains, equal, main

LINT = os.path.join(os.environ["BUILD_DIR"], "bin", "sgl-catalog")
CATALOG = """\
library:
  package: acme
  op_namespace: acme
  distributions: [acme]
  releases: [1.0, 1.1, 1.2]
symbols:
%s"""
ROW = """\
  - id: %(name)s
    status: removed
    family: x
    summary: It did x.
    python: [{module: acme, name: %(name)s}]
    python_signature: "()"
    op_name: %(name)s_op
    op_schema: "%(name)s_op() -> ()"
    added_in: 1.0
    removals:
      - {layer: python, platform: cuda, last_with: %(last)s, first_without: %(first)s, change: "#1", date: 2026-01-01}
      - {layer: operator, platform: cuda, last_with: %(last)s, first_without: %(first)s, change: "#1", date: 2026-01-01}
    stage: tombstone
    routes: [{kind: none, note: Gone.}]
    provenance: [notes]
"""


class Releases(Tree):
    """Folders old and new with a package acme; {path: text} each, relative to the package."""

    def __init__(self, old, new, catalog=None, versions=("1.0", "1.1")):
        super().__init__()
        self.put("catalog.yaml", CATALOG % (catalog or ROW % {"name": "zeta", "last": "1.1", "first": "1.2"}))
        for side, files, version in (("old", old, versions[0]), ("new", new, versions[1])):
            for path, text in {"__init__.py": "", "version.py": f'__version__ = "{version}"\n', **files}.items():
                self.put(f"{side}/acme/{path}", text)

    def diff(self, *args, sides=("old", "new")):
        return self.run("catalog", "diff", "--catalog", "catalog.yaml", *args, *sides)

    def changes(self, layer=None, sides=("old", "new")):
        """[kind, name, why or alias]..."""
        done = self.diff("--format", "json", sides=sides)
        log = json.loads(done.out)
        return [[c["kind"], (c["old"] or c["new"])["name"], c["why"]] for c in log["changes"] if not c["alias"] and layer in (None, c["layer"])]


def wheel(path, files, distribution="acme", version="1.0"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{distribution}-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n\nName: other\n")
        for name, content in files.items():
            archive.writestr(name, content)


def library(source, *flags):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.so"
        subprocess.run([os.environ.get("CXX", "g++"), "-std=c++17", "-shared", "-fPIC", "-nostdlib", "-x", "c++", "-", "-o", file, *flags],
                       input=source.encode(), check=True)
        return file.read_bytes()


def test_names():
    old = {"__init__.py": "from acme.gemm import f, g as g2\nfrom .stars import *\nfrom os import path\nif x:\n    from acme.gemm import branch\nelse:\n    def branch(a): pass\n",
           "gemm.py": "import os\nfrom typing import Any\ndef f(a): pass\ndef g(a): pass\ndef branch(a): pass\ndef _private(): pass\nVALUE = 1\n",
           "stars.py": "__all__ = ['_listed', 'star']\n__all__ += ['more']\ndef _listed(): pass\ndef star(): pass\ndef more(): pass\ndef unlisted(): pass\n",
           "_hidden.py": "def h(): pass\n",
           "sub/__init__.py": "from ..gemm import f\nfrom . import inner\n", "sub/inner.py": "def deep(): pass\n"}
    with Releases(old, {}) as tree:
        done = tree.diff()
        equal((done.err, done.returncode), ("", 3))
        names = [line.split("(")[0].strip() + "; also" * (", also as" in line) for line in done.out.splitlines() if line.startswith("  - ")]
        equal(names, ["- acme.gemm", "- acme.gemm.VALUE", "- acme.gemm.branch; also", "- acme.gemm.f; also", "- acme.gemm.g; also",
                      "- acme.stars", "- acme.stars._listed; also", "- acme.stars.more; also", "- acme.stars.star; also", "- acme.stars.unlisted",
                      "- acme.sub", "- acme.sub.inner", "- acme.sub.inner.deep"])
        contains(done.out, "- acme.gemm.f(a), also as acme.f, acme.sub.f\n")
        contains(done.out, "- acme.gemm.g(a), also as acme.g2\n")
        equal(tree.diff(sides=("new", "new")).returncode, 0)
        contains(tree.diff(sides=("new", "old")).out, "  + acme.gemm.f(a), also as")
        equal(tree.diff(sides=("new", "old")).returncode, 0)


def test_signatures():
    """(old, new, what differs; "!" in front: old calls do not fit)"""
    cases = [("(a, b=1)", "(a,\n  b = 1, # why\n)", None), ("(a: int) -> int", "(a: 'str')", None), ("(a)", "(a, b=2)", "parameter b is new"),
             ("(a)", "(a, b)", "!parameter b is new and has no default"), ("(a, b)", "(a)", "!parameter b is gone"),
             ("(a, b)", "(b, a)", "!parameter a was number 1 and is number 2"), ("(a, b)", "(a, *, b)", "!parameter b is keyword-only now"),
             ("(a=1)", "(a)", "!parameter a has no default any more"), ("(a=1)", "(a=2)", "!default of a was 1 and is 2"), ("(a)", "(a=1)", "parameter a has a default now"),
             ("(a, /)", "(b, /)", None), ("(a)", "(a, /)", "!parameter a is positional-only now"), ("(a, *args)", "(a)", "!*args is gone"),
             ("(a, **kw)", "(a)", "!**kw is gone"), ("(*, a)", "(**kw)", "parameter kw is new"), ("(a, x=0, b=1)", "(a, b=1)", "!parameter x is gone"),
             ("(a, b=f'{1}, 2')", "(a, c=0, b=f'{1}, 2')", "!parameter b was number 2 and is number 3")]
    sides = [{"m.py": "".join(f"def f{i}{case[side]}: pass\n" for i, case in enumerate(cases))} for side in (0, 1)]
    compare(cases, sides, "acme.m.f")


def compare(cases, sides, front):
    with Releases(*sides) as tree:
        log = json.loads(tree.diff("--format", "json").out)
        have = {c["old"]["name"].removeprefix(front): ("!" * c["breaks"]) + c["why"] for c in log["changes"]}
        for i, (old, new, want) in enumerate(cases):
            equal((old, new, have.pop(str(i), None)), (old, new, want))
        equal(have, {})


def test_classes():
    old = {"m.py": "from dataclasses import dataclass\n@dataclass\nclass D:\n    a: int\n    b: int = 1\n    def m(self): pass\nclass C:\n    def __init__(self, a): pass\nclass E:\n    pass\n"}
    new = {"m.py": "from dataclasses import dataclass\n@dataclass\nclass D:\n    b: int = 1\nclass C:\n    def __init__(self, a, b): pass\nclass E:\n    pass\n"}
    with Releases(old, new) as tree:
        equal(tree.changes(), [["removed", "acme.m.D.m", None], ["changed", "acme.m.C", "parameter b is new and has no default"], ["changed", "acme.m.D", "parameter a is gone"]])


def test_methods():
    """(old class, new class, changes of C); the class itself is not among them."""
    cases = [("def m(self, a): pass", "def n(self): pass", [["removed", "m", None], ["added", "n", None]]),
             ("def m(self, a): pass", "def m(me, a): pass", []), ("def m(self, a): pass", "def m(self): pass", [["changed", "m", "parameter a is gone"]]),
             ("def _m(self): pass", "pass", []), ("def __eq__(self, o): pass", "pass", []), ("def __call__(self, x): pass", "pass", [["removed", "__call__", None]]),
             ("@staticmethod\n    def m(a): pass", "@staticmethod\n    def m(b): pass", [["changed", "m", "parameter a is gone"]]),
             ("@classmethod\n    def m(cls, a): pass", "@classmethod\n    def m(c, a): pass", []),
             ("@property\n    def p(self): pass\n    @p.setter\n    def p(self, v): pass", "@property\n    def p(self): pass", []),
             ("@property\n    def p(self): pass", "def p(self): pass", []), ("def p(self): pass", "@property\n    def p(self): pass", [["changed", "p", "its signature cannot be read any more"]]),
             ("A = 1\n    B: int = 2\n    C: int", "A = 2", [["removed", "B", None]]), ("class In: pass", "pass", [["removed", "In", None]]),
             ("if x:\n        def m(self): pass", "pass", [["removed", "m", None]]),
             ("if x:\n        def m(self): pass\n    else:\n        def m(self, b): pass", "def m(self): pass", [["changed", "m", "one of several definitions"]]),
             ("def fused_moe_gate(self, x): pass", "def fused_moe_gates(self, x): pass", [["renamed", "fused_moe_gate", None]])]
    for old, new, want in cases:
        with Releases({"m.py": f"class C:\n    {old}\n"}, {"m.py": f"class C:\n    {new}\n"}) as tree:
            equal((old, [[kind, name.removeprefix("acme.m.C."), why] for kind, name, why in tree.changes()]), (old, want))


def test_methods_of_bases():
    base = "class Base:\n    def m(self, a): pass\n"
    for old, new, want in (
            (base + "class C(Base): pass\n", base + "class C(Base):\n    def m(self, a): pass\n", []),  # moved down
            ("class C:\n    def m(self, a): pass\n", "from acme.b import Base\nclass C(Base): pass\n", []),  # moved up, into another module
            ("class C:\n    def m(self, a): pass\n", "import torch\nclass C(torch.nn.Module): pass\n", []),  # who knows what that has
            ("import torch\nclass C(torch.nn.Module):\n    def m(self, a): pass\n", "import torch\nclass C(torch.nn.Module): pass\n", ["removed acme.m.C.m"]),
            (base + "class C(Base): pass\n", "class Base: pass\nclass C(Base): pass\n", ["removed acme.m.Base.m"]),  # C.m is an alias of it
            ("class C:\n    def m(self): pass\n", "class D: pass\n", ["removed acme.m.C", "added acme.m.D"]),  # its methods went with it
            ("class C(D):\n    def m(self): pass\nclass D(C): pass\n", "class C(D): pass\nclass D(C): pass\n", ["removed acme.m.C.m"])):  # a circle
        with Releases({"m.py": old, "b.py": base}, {"m.py": new, "b.py": base}) as tree:
            equal((old, new, [f"{kind} {name}" for kind, name, _ in tree.changes()]), (old, new, want))
    with Releases({"__init__.py": "from acme.m import C\n", "m.py": "class C:\n    def m(self): pass\ndef m(): pass\n"}, {"__init__.py": "from acme.m import C\n", "m.py": "class C: pass\ndef m(): pass\n"}) as tree:
        done = tree.diff()
        contains(done.out, "  - acme.m.C.m(), also as acme.C.m\n")
        equal("not in the catalog" in done.out, False)  # rows are functions
        equal(done.returncode, 1)


def test_definitions_in_branches():
    both = "if x:\n    def f(a): pass\nelse:\n    def f(b): pass\n"
    with Releases({"m.py": both}, {"m.py": both.replace("(b)", "(c)")}) as tree:
        equal(tree.changes(), [["changed", "acme.m.f", "one of several definitions"]])


def test_renamed():
    with Releases({"m.py": "def fused_moe_gate(x, bias, k): pass\ndef other(q): pass\n"},
                  {"m.py": "def fused_moe_gates(x, bias, k): pass\ndef unlike_any(a, b): pass\n"}) as tree:
        out = tree.diff().out
        contains(out, "  > acme.m.fused_moe_gate -> acme.m.fused_moe_gates (")
        contains(out, "  - acme.m.other(q)\n")
        contains(out, "  + acme.m.unlike_any(a, b)\n")
    with Releases({"m.py": "def moved(x): pass\n"}, {"n.py": "def moved(x): pass\n"}) as tree:
        contains(tree.diff().out, "  > acme.m.moved -> acme.n.moved (100% alike)\n")


OPS = """
#include <x>
TORCH_LIBRARY_FRAGMENT(acme, m) {
  m.def("plain(Tensor! a,int b = 1,  Tensor ? c) -> ()");
  m.impl("plain", torch::kCUDA, &plain);
  m.def("joined(Tensor a, "
        "int b) -> Tensor");
  m.def(R"(raw(Tensor a) -> Tensor[])");
  // m.def("comment(Tensor a) -> Tensor");
  m.def(TORCH_SELECTIVE_SCHEMA("selected(*, int a) -> int"));
  m.def("bare", &bare);
}
TORCH_LIBRARY(foreign, m) { m.def("foreign(Tensor a) -> Tensor"); }
TORCH_LIBRARY_IMPL(acme, CUDA, m) { m.def("no_definition(Tensor a) -> Tensor"); }
"""
EMPTY = "TORCH_LIBRARY_FRAGMENT(acme, m) { }\n"


def test_operators_in_sources():
    with Releases({"csrc/ops.cc": OPS, "csrc/rocm/ops.cc": OPS, "csrc/ops_musa.cc": EMPTY}, {"csrc/ops.cc": EMPTY, "csrc/ops_musa.cc": OPS}) as tree:
        done = tree.diff()
        lines = [line for line in done.out.splitlines() if line.startswith(("  - ", "  + "))]
        removed = ["bare", "joined(Tensor a, int b) -> Tensor", "plain(Tensor! a, int b=1, Tensor? c) -> ()", "raw(Tensor a) -> Tensor[]", "selected(*, int a) -> int"]
        equal([line for line in lines if "[musa]" not in line], ["  - " + name for name in removed])
        contains(done.out, "  + plain [musa](Tensor! a, int b=1, Tensor? c) -> ()\n")
        equal("rocm" in done.out, False)  # only OLD has it: nothing to compare with
        contains(done.out, "C++ functions: not compared, both have nothing that would show them\n")


def test_schemas():
    """(old, new, what differs)"""
    cases = [("(Tensor a) -> ()", "(Tensor  a)->()", None), ("(Tensor! a) -> ()", "(Tensor(a!) a) -> ()", "only what the schema says of aliases, defaults or optional values"),
             ("(Tensor a) -> ()", "(Tensor? a) -> ()", "only what the schema says of aliases, defaults or optional values"),
             ("(Tensor? a) -> ()", "(Tensor a) -> ()", "!argument a was Tensor? and is Tensor"), ("(int a) -> ()", "(SymInt a) -> ()", "!argument a was int and is SymInt"),
             ("(int a) -> ()", "(int a, int b) -> ()", "!argument b is new and has no default"), ("(int a) -> ()", "(int a, int b=1) -> ()", "argument b is new"),
             ("(int a) -> ()", "(int a) -> int", "!it returned () and returns int"), ("(int a, int b) -> ()", "(int b, int a) -> ()", "!argument a was number 1 and is number 2"),
             ("(int a) -> (Tensor[])", "(int a) -> Tensor[]", None), ("(int a) -> ()", "(int b) -> ()", "!argument a is gone"), ("(int a=1) -> ()", "(int a=2) -> ()", "!default of a was 1 and is 2")]
    sides = [{"ops.cc": "TORCH_LIBRARY(acme, m) {" + "".join(f'm.def("op{i}{case[side]}");\n' for i, case in enumerate(cases)) + "}\n"} for side in (0, 1)]
    compare(cases, sides, "op")


TENSOR = "namespace at { class Tensor { public: ~Tensor(); void *p; }; }\nnamespace c10 { void own(int) {} }\n"
BINARY = TENSOR + """
void kept(at::Tensor &, long) {}
void gone(at::Tensor &, long) {}
void internal(int *) {}
namespace a { void changed(at::Tensor const &, int) {} }
template <typename T> void instance(T) {}
template void instance<int>(int);
extern "C" int c_function(void) { return 0; }
int variable = 1;
__attribute__((visibility("hidden"))) void hidden() {}
extern const char *const schemas[];
const char *const schemas[] = {"gone(Tensor a, int b) -> ()", "kept(Tensor! a, int b) -> ()", "acme::spaced(Tensor a) -> Tensor", "no schema (really)"};
"""
NEW_BINARY = TENSOR + """
void kept(at::Tensor &, long) {}
namespace a { void changed(at::Tensor const &, long) {} }
extern const char *const schemas[];
const char *const schemas[] = {"kept(Tensor! a, int b) -> ()"};
"""


def test_libraries_in_wheels():
    with Releases({}, {}) as tree, tempfile.TemporaryDirectory() as temporary:
        wheel(tree.path / "old.whl", {"acme/__init__.py": "def f(): pass\n", "acme/sm90/ops.abi3.so": library(BINARY), "acme/sm100/ops.abi3.so": library(BINARY),
                                      "other/x.so": b"no library", "acme/x.py.txt": "def no(): pass"})
        wheel(tree.path / "new.whl", {"acme/__init__.py": "def f(): pass\n", "acme/ops.abi3.so": library(NEW_BINARY)}, version="1.1")
        done = tree.run("catalog", "diff", "--catalog", "catalog.yaml", "old.whl", "new.whl", env={**os.environ, "TMPDIR": temporary})
        equal((done.err, done.returncode), ("", 3))
        contains(done.out, "OLD  acme 1.0 (old.whl)\nNEW  acme 1.1 (new.whl)\n")
        contains(done.out, "Python names: 0 removed, 0 renamed, 0 changed, 0 added\n")
        contains(done.out, "\nOperators: 2 removed, 0 renamed, 0 changed, 0 added\n  - gone(Tensor a, int b) -> ()\n      not in the catalog\n  - spaced(Tensor a) -> Tensor\n")
        functions = done.out[done.out.index("C++ functions"):]
        equal(functions, "C++ functions: 4 removed, 0 renamed, 1 changed, 0 added\n  - c_function\n  - gone(at::Tensor&, long)\n      not in the catalog\n"
                         "  - internal(int*)\n  - variable\n  ~ a::changed: parameter 2 was int and is long\n      was (at::Tensor const&, int)\n      is  (at::Tensor const&, long)\n")
        equal(os.listdir(temporary), [])


def test_cuda_code_is_left_out():
    """A schema inside of a fat binary is none; what stands around it counts."""
    fat = lambda text: struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 20) + text.encode().ljust(1 << 20, b"\1")
    blob = fat("\0hidden(Tensor a) -> Tensor\0") + b"\0second(Tensor a) -> Tensor\0\0\0\0\0\0\0\0" + fat("") + b"\0third(Tensor a) -> Tensor\0"
    with Releases({}, {}) as tree:
        (tree.path / "blob").write_bytes(blob)
        source = f'asm(".section .rodata\\n.ascii \\"first(Tensor a) -> Tensor\\"\\n.byte 0\\n.incbin \\"{tree.path}/blob\\"\\n.byte 0\\n");\n'
        wheel(tree.path / "old.whl", {"acme/__init__.py": "", "acme/o.so": library(source)})
        wheel(tree.path / "new.whl", {"acme/__init__.py": "", "acme/o.so": library('extern const char *const s[]; const char *const s[] = {"left() -> ()"};\n')})
        equal([name for kind, name, _ in tree.changes("operator", ("old.whl", "new.whl")) if kind == "removed"], ["first", "second", "third"])


def test_dead_function():
    """A function that stays and whose operator went."""
    python = "import torch\ndef f(a):\n    return torch.ops.acme.f_op.default(a)\n"
    with Releases({"m.py": python, "ops.cc": EMPTY.replace(" }", ' m.def("f_op(Tensor a) -> Tensor"); }')}, {"m.py": python, "ops.cc": EMPTY}) as tree:
        equal(tree.changes("python"), [["changed", "acme.m.f", "its operator f_op is gone"]])


def test_forms_agree():
    """A wheel, a zip, a source package, a folder and the package's own folder are the same release."""
    files = {"acme/__init__.py": "from .m import f\n", "acme/m.py": "def f(a, b=1): pass\n", "acme/version.py": '__version__ = "1.0"\n'}
    with Releases({"m.py": "def f(a, b=1): pass\n", "__init__.py": "from .m import f\n"}, {}) as tree:
        wheel(tree.path / "a.whl", files)
        with tarfile.open(tree.path / "a.tar.gz", "w:gz") as archive:
            for name, text in {"PKG-INFO": "Name: acme\nVersion: 1.0\n", **{f"python/{k}": v for k, v in files.items()}}.items():
                info = tarfile.TarInfo(f"acme-1.0/{name}")
                info.size = len(text)
                archive.addfile(info, io.BytesIO(text.encode()))
        for side in ("a.whl", "a.tar.gz", "old", "old/", "old/acme"):
            for other in ("a.whl", "old"):
                done = tree.diff(sides=(side, other))
                equal((side, other, done.err, done.returncode), (side, other, "", 0))
                contains(done.out, " 1.0 (")
        contains(tree.diff(sides=("a.tar.gz", "old")).out, "OLD  acme 1.0 (a.tar.gz, package in acme-1.0/python/acme)\n")


def test_what_the_catalog_says():
    rows = "".join(ROW % {"name": name, "last": last, "first": first} for name, last, first in
                   [("agrees", "1.0", "1.1"), ("later", "1.1", "1.2"), ("never", "1.0", "1.1"), ("stays", "1.0", "1.1")])
    old = {"__init__.py": "def agrees(): pass\ndef later(): pass\ndef stays(): pass\ndef unknown(): pass\n"}
    with Releases(old, {"__init__.py": "def stays(): pass\n"}, rows) as tree:
        done = tree.diff()
        equal(done.returncode, 3)
        contains(done.out, "  - acme.agrees()\n      catalog: agrees\n  - acme.later()\n      the catalog disagrees: later: first without it: 1.2\n"
                           "  - acme.unknown()\n      not in the catalog\n")
        contains(done.out, "\nRows of the catalog that OLD and NEW contradict:\n  ! never, layer python: first without it: 1.1, but OLD does not have it either\n"
                           "  ! stays, layer python: first without it: 1.1, but NEW has it\n")
    row = ROW % {"name": "agrees", "last": "1.0", "first": "1.1"}
    for both in ("def agrees(): pass\n", "if x:\n    def agrees(): pass\nelse:\n    def agrees(a): pass\n"):
        with Releases({"__init__.py": both}, {}, row) as tree:
            equal((both, tree.diff().returncode & 2), (both, 0))
    with Releases({"__init__.py": "def agrees(a): pass\n"}, {}, row) as tree:
        contains(tree.diff().out, "      the catalog disagrees: agrees: it has ()\n")


def test_draft():
    """The rows are good but for what only a person knows; with that they are a catalog."""
    define = EMPTY.replace(" }", ' m.def("other_op(Tensor! a, Tensor[] b) -> Tensor"); m.def("alone(Tensor a) -> ()"); }')
    old = {"__init__.py": "from .m import f\n", "m.py": 'def f(a: "x y", b=\'"\') -> int:\n    return torch.ops.acme.other_op(a, b)\n', "ops.cc": define}
    with Releases(old, {"m.py": "", "ops.cc": EMPTY}) as tree:
        wheel(tree.path / "old.whl", {f"acme/{k}": v for k, v in old.items() if k != "ops.cc"} | {"acme/o.so": library(
            TENSOR + "namespace std { template <typename T> class vector {}; }\nnamespace nn { at::Tensor *other_op(at::Tensor &, at::Tensor const &) { return 0; } }\n"
            'extern const char *const schemas[];\nconst char *const schemas[] = {"other_op(Tensor! a, Tensor b) -> Tensor", "alone(Tensor a) -> ()"};\n')})
        wheel(tree.path / "new.whl", {"acme/m.py": "", "acme/__init__.py": "", "acme/o.so": library("extern const char *const s[]; const char *const s[] = {\"left() -> ()\"};\n")}, version="1.1")
        for sides in (("old", "new"), ("old.whl", "new.whl")):
            done = tree.diff("--draft", sides=sides)
            equal((done.err, done.returncode), ("", 3))
            equal([line.split(": ")[1] for line in done.out.splitlines() if line.startswith("  - id")], ["alone", "f"])
            tree.put("draft.yaml", CATALOG % done.out)
            lint = subprocess.run([LINT, "lint", "draft.yaml"], cwd=tree.path, capture_output=True, text=True)
            equal(lint.returncode != 0, True)
            whole = done.out.replace('""', "filled").replace("date: filled", "date: 2026-01-01").replace("change: filled", 'change: "#1"').replace("added_in: filled", "added_in: 1.0")
            tree.put("draft.yaml", CATALOG % whole)
            lint = subprocess.run([LINT, "lint", "draft.yaml"], cwd=tree.path, capture_output=True, text=True)
            equal((lint.stdout + lint.stderr, lint.returncode), ("draft.yaml: 2 rows, 2 removed, 0 planned\n", 0))
            contains(done.out, "      - {module: acme.m, name: f}\n      - {module: acme, name: f}\n")
            contains(done.out, "    op_name: other_op\n")
        contains(done.out, "      scope: nn\n      declaration: \"at::Tensor other_op(at::Tensor& a, const at::Tensor& b)\"\n      mangled: _ZN2nn8other_opERN2at6TensorERKS1_\n")
        equal(tree.diff("--draft", sides=("new", "new")).out, "")


def test_json():
    with Releases({"m.py": "def f(a): pass\n"}, {"m.py": "def f(): pass\n"}) as tree:
        log = json.loads(tree.diff("--format", "json").out)
        equal((log["format"], log["formatVersion"], log["exitStatus"]), ("sgl-migrate catalog diff", 1, 1))
        equal(log["old"], {"path": "old", "distribution": None, "version": "1.0", "package": "acme", "notAnalysed": []})
        equal(log["compared"], {"python": True, "operator": False, "cxx": False})
        item = {"name": "acme.m.f", "home": "acme.m.f", "symbol": None, "place": "acme/m.py:1", "module": False}
        equal(log["changes"], [{"layer": "python", "platform": "cuda", "kind": "changed", "breaks": True, "old": {**item, "signature": "(a)"},
                                "new": {**item, "signature": "()"}, "why": "parameter a is gone", "alike": 0, "alias": False, "catalog": None}])


def test_what_cannot_be_read():
    with Releases({"m.py": "def f(): pass\n"}, {"m.py": "def f(): pass\ndef (: pass\n"}) as tree:
        done = tree.diff()
        equal(done.returncode & 4, 4)
        contains(done.err, "sgl-migrate: new: acme/m.py:2: no Python syntax; names behind it may be missing\n")
        tree.put("text.whl", "no archive\n")
        tree.put("empty.whl", "")
        tree.put("empty/a.txt", "")
        wheel(tree.path / "good.whl", {"acme/__init__.py": "x = 1\n", "acme/x.so": os.urandom(300000), "acme/y.so": "text"})
        tree.put("cut.whl", (tree.path / "good.whl").read_bytes()[:200000])
        for side, says in (("text.whl", "text.whl: neither a folder nor a wheel, zip or tar file"), ("empty.whl", "empty.whl: "),
                           ("absent", "absent: No such file or directory\n"), ("empty", "empty: nothing of package acme in it\n")):
            done = tree.diff(sides=(side, "old"))
            equal((side, done.returncode, done.out), (side, 8, ""))
            contains(done.err, "sgl-migrate: " + says)
        done = tree.diff(sides=("good.whl", "old"))
        equal(done.returncode & 4, 4)
        contains(done.err, "good.whl: acme/y.so: ")
        equal(tree.diff(sides=("cut.whl", "old")).returncode & 12 > 0, True)


def test_packed_source_package():
    """The checksum of gzip stands behind the tar file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in (("acme/__init__.py", b""), ("acme/version.py", b'__version__ = "1.0"\n'), ("acme/m.py", b"def f(a): pass\n")):
            one = tarfile.TarInfo("acme-1.0/" + name)
            one.size = len(text)
            archive.addfile(one, io.BytesIO(text))
    good = out.getvalue()
    with Releases({}, {"m.py": "def f(a): pass\n"}) as tree:
        for name, data, says in (("good", good, ""), ("crc", good[:-6] + b"none" + good[-2:], "incorrect "), ("cut", good[:-5], "truncated gzip data\n")):
            tree.put(f"{name}.tar.gz", data)
            done = tree.diff(sides=(f"{name}.tar.gz", "new"))
            equal((name, done.returncode & 12 > 0), (name, says != ""))
            contains(done.err, says)


def test_hostile():
    with Releases({}, {}) as tree:
        # Two uses of the type before, forty times: 2^40 bytes of text.
        name = "_Z1fSt4pairIiiE" + "".join(f"S_IS{i}_S{i}_E" for i in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") + "S_ISZ_SZ_E"
        chain = "".join(f"from .m{i + 1} import *\nfrom .m{i + 1} import *\n" for i in range(1))
        files = {f"acme/m{i}.py": chain.replace("m1", f"m{i + 1}") for i in range(40)}
        wheel(tree.path / "old.whl", {"acme/__init__.py": "from .m0 import *\n", **files, "acme/m40.py": "from .m0 import *\ndef f(): pass\n",
                                      "acme/x.so": library(f'asm(".globl {name}\\n.type {name}, @function\\n{name}: nop\\n");\n')})
        wheel(tree.path / "new.whl", {"acme/__init__.py": "", "acme/x.so": library("void g() {}\n")})
        done = tree.diff(sides=("old.whl", "new.whl"))
        contains(done.out, f"  - {name}\n")
        contains(done.err, "old.whl: acme: its imports and classes lead through each other too often; names may be missing\n")
        bases = ", ".join(f"C{i}" for i in range(30))  # 30^30 ways through them
        tree.put("old/acme/m.py", "".join(f"class C{i}({bases}):\n    def m{i}(self): pass\n" for i in range(30)))
        tree.put("new/acme/m.py", "".join(f"class C{i}({bases}):\n    def m{i + 1}(self): pass\n" for i in range(30)))
        done = tree.diff()
        contains(done.out, "  > acme.m.C0.m0 -> acme.m.C0.m30 (80% alike), also as acme.m.C1.m0, acme.m.C10.m0,")
        with zipfile.ZipFile(tree.path / "bomb.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            archive.writestr("acme/__init__.py", "")
            archive.writestr("acme/x.so", bytes(200 << 20))
        done = tree.diff(sides=("bomb.whl", "new.whl"))
        equal(done.returncode & 4, 4)
        contains(done.err, "the archive unpacks to more than any wheel does")


def test_usage():
    with Releases({}, {}) as tree:
        for args, says in ((["catalog"], "catalog needs a command: diff; see sgl-migrate catalog --help"), (["catalog", "lint"], "catalog needs a command: diff"),
                           (["catalog", "diff", "old"], "catalog diff needs OLD and NEW"), (["catalog", "diff", "--format", "xml", "old", "new"], "unknown format 'xml': text or json"),
                           (["catalog", "diff", "--draft", "--format", "json", "old", "new"], "--draft and --format exclude each other")):
            done = tree.run(*args)
            equal((done.returncode, done.out), (8, ""))
            contains(done.err, says)


main(globals())
