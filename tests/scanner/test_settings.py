#!/usr/bin/env python3
""".sgl-migrate.yaml: a tree's defaults. The command line wins, all is said, faults are loud."""
import json, subprocess
from tool import ARGS, Tree, contains, equal, main

NAME = "dsv3_router_gemm"
USE = f"from sgl_kernel import {NAME}\n"


def paths(tree, *args):
    done = tree.run("scan", "--format", "json", *(args or ["."]))
    return [f["path"] for f in json.loads(done.stdout)["findings"]]


def options(tree, *args):
    done = tree.run("scan", "--format", "json", *args)
    return tuple(json.loads(done.stdout)["options"][k] for k in ("kernel", "to")), done.err


def test_kernel_and_route():
    with Tree({"t/.sgl-migrate.yaml": "kernel: 0.4.4\nto: sglang@0.5.17\n", "t/a.py": USE, "t/requirements.txt": "sglang-kernel==0.4.5\n"}) as tree:
        equal(options(tree, "t"), (("0.4.4", "sglang@0.5.17"), "sgl-migrate: t/.sgl-migrate.yaml: kernel 0.4.4, to sglang@0.5.17\n"))
        have, err = options(tree, *ARGS, "t")
        equal((have, err.splitlines()[0]), (("0.4.6", "jit"), "sgl-migrate: t/.sgl-migrate.yaml: kernel 0.4.4 (not used: the command line has one), "
                                                              "to sglang@0.5.17 (not used: the command line has one)"))
        equal(options(tree, "--to", "jit", "t/")[0], ("0.4.4", "jit"))
        tree.run("fix", "--kernel", "0.4.6", "t")
        contains(tree.get("t/a.py"), "from sglang.kernels.ops.gemm")
        equal(options(tree, *ARGS, "t/a.py"), (("0.4.6", "jit"), ""))  # a file is no root of a tree
    with Tree({".sgl-migrate.yaml": "# nothing\n", "a.py": USE}) as tree:
        equal(options(tree, *ARGS, "."), (("0.4.6", "jit"), "sgl-migrate: .sgl-migrate.yaml: no settings\n"))


def test_exclude():
    files = {path: USE for path in ("a.py", "third_party/x.py", "src/third_party/x.py", "src/a.gen.py", "src/deep/er/b.gen.py", "src/tests/t.py", "keep/tests/t.py")}
    for patterns, left in (
        ("[third_party]", ["a.py", "keep/tests/t.py", "src/a.gen.py", "src/deep/er/b.gen.py", "src/tests/t.py", "src/third_party/x.py"]),
        ('["third_party/", "./src/"]', ["a.py", "keep/tests/t.py"]),
        ('["*.gen.py", "*/tests"]', ["a.py", "src/third_party/x.py", "third_party/x.py"]),
        ("[SRC, a.p]", sorted(files)),
    ):
        with Tree({".sgl-migrate.yaml": f"exclude: {patterns}\n", **files}) as tree:
            equal((patterns, paths(tree)), (patterns, left))
    with Tree({".sgl-migrate.yaml": "exclude:\n- third_party\n", "third_party/x.py": USE, "a.py": ""}) as tree:
        done = tree.run("scan", *ARGS, ".")
        equal((done.returncode, done.err), (0, "sgl-migrate: .sgl-migrate.yaml: exclude 1\n"))
        contains(done.out, "left out: third_party (excluded by .sgl-migrate.yaml)\n")
        equal(tree.run("scan", *ARGS, "third_party").returncode, 1)


def test_include():
    files = {"build/CMakeCache.txt": "", "build/gen/a.py": USE, "build/gen/deep/b.py": USE, "build/other.py": USE, "build/one.py": USE, "a.py": USE, "out/x.py": USE, ".gitignore": "out/\n"}
    with Tree(files) as tree:
        subprocess.run(["git", "init", "-q", "."], cwd=tree.path, check=True)
        equal(paths(tree), ["a.py"])
        tree.put(".sgl-migrate.yaml", "include: [build/gen/, build/one.py, out, a.py]\n")
        equal(paths(tree), ["a.py", "build/gen/a.py", "build/gen/deep/b.py", "build/one.py", "out/x.py"])
        tree.put(".sgl-migrate.yaml", "include: [build/gen]\nexclude: [build/gen/deep]\n")
        equal(paths(tree), ["a.py", "build/gen/a.py"])


def test_baseline():
    with Tree({"t/a.py": USE, "t/.sgl-migrate.yaml": "baseline: ci/base.txt\n", "t/ci/x": ""}) as tree:
        done = tree.run("scan", *ARGS, "t")
        equal((done.returncode, done.err.splitlines()), (8, ["sgl-migrate: t/.sgl-migrate.yaml: baseline t/ci/base.txt",
                                                             "sgl-migrate: t/ci/base.txt: cannot be read: No such file or directory"]))
        done = tree.run("scan", *ARGS, "--write-baseline", "t/ci/base.txt", "t")
        equal((done.returncode, done.err.splitlines()[0]), (0, "sgl-migrate: t/.sgl-migrate.yaml: baseline t/ci/base.txt (not used: a new one is written)"))
        equal(tree.run("scan", *ARGS, "t").returncode, 0)
        tree.put("empty.txt", "# sgl-migrate baseline 1\n")
        equal(tree.run("scan", *ARGS, "--baseline", "empty.txt", "t").returncode, 1)
        done = tree.run("scan", *ARGS, "t", "t/ci")
        equal((done.returncode, done.err), (1, "sgl-migrate: t/.sgl-migrate.yaml: baseline t/ci/base.txt (not used: several paths)\n"))
        contains(tree.run("fix", *ARGS, "t").out, "1 file fixed")


def test_several_trees():
    with Tree({"a/.sgl-migrate.yaml": "kernel: 0.4.4\nexclude: [x.py]\n", "b/.sgl-migrate.yaml": "kernel: 0.4.6\n", "c/.sgl-migrate.yaml": "to: jit\n",
               "a/x.py": USE, "b/x.py": USE, "c/x.py": USE}) as tree:
        equal((options(tree, "b", "c")[0], paths(tree, "b", "c")), (("0.4.6", "jit"), ["x.py", "x.py"]))
        done = tree.run("scan", "a", "b")
        equal((done.returncode, done.err.splitlines()[-1]), (8, "sgl-migrate: b/.sgl-migrate.yaml: kernel 0.4.6, but a/.sgl-migrate.yaml says 0.4.4; give --kernel, or one PATH"))
        equal(len(paths(tree, *ARGS, "a", "b", "c")), 2)


def test_faults():
    for text, fault in (
        ("kernels: 0.4.6\n", "1: unknown key kernels"),
        ("kernel: 0.4.6\n\nformat: sarif\n", "3: unknown key format"),
        ("kernel: 0.4.6\nkernel: 0.4.5\n", "2: this key is there twice: kernel"),
        ("to: jit\nkernel: new\n", "2: kernel 'new': a release number is needed"),
        ("kernel: ''\n", "1: kernel '': a release number is needed"),
        ("to: sglang\n", "1: to 'sglang': jit or sglang@VERSION is needed"),
        ("exclude: src\n", "1: a list is expected in field exclude"),
        ("exclude: [a: b]\n", "1: a text is expected"),
        ("exclude:\n- a\n- /b\n", "3: exclude '/b': a pattern below this folder is needed"),
        ("exclude: [a, '']\n", "1: exclude '': a pattern below this folder is needed"),
        ("include: [../x]\n", "1: include '../x': a path below this folder is needed"),
        ("include:\n- none\n", "2: include 'none': No such file or directory"),
        ("baseline: /etc/passwd\n", "1: baseline '/etc/passwd': a path below this folder is needed"),
        ("- a\n", " a mapping is expected"),
        ("kernel: [\n", "1: "),
        ("kernel: &a 0.4.6\nto: *a\n", ""),
        ("kernel: {{\n", ""),
        (b"\xff\n", "1: "),
        ("\r\r\rformat: sarif", "4: unknown key format"),
        ('"for\\e[1mmat": 1\n', "1: unknown key for\\x1b[1mmat"),
        ("x" * (1 << 20) + "\n", " is larger than 1 MiB"),
    ):
        with Tree({".sgl-migrate.yaml": text, "a.py": USE}) as tree:
            done = tree.run("scan", *ARGS, ".")
            equal((text[:50], done.returncode, done.out, done.err.count("\n")), (text[:50], 8, "", 1))
            contains(done.err, f"sgl-migrate: .sgl-migrate.yaml:{fault}")
            equal(tree.get("a.py"), USE)


main(globals())
