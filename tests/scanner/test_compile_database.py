#!/usr/bin/env python3
"""compile_commands.json: what it adds to the reading of C++ without one, and that nothing is lost by it."""
import json, os, time
from tool import ARGS, Tree, contains, equal, main

DECLARE = "#include <ATen/ATen.h>\nvoid dsv3_router_gemm(at::Tensor&, const at::Tensor&, const at::Tensor&);\n"
CALL = "void f(at::Tensor& o, at::Tensor a) { dsv3_router_gemm(o, a, a); }\n"
BRANCH = DECLARE + "#ifdef ENABLE_ROUTER\n" + CALL + "#endif\n"


def entry(file, command=None, directory="DIR", **more):
    return dict({"directory": directory, "file": file}, **({"command": command} if isinstance(command, str) else
                                                           {"arguments": command} if command else {}), **more)


def rows(files, entries, place="compile_commands.json", args=()):
    """Results of a tree with this database; DIR stands for the tree's folder."""
    with Tree(files) as tree:
        if entries is not None:
            tree.put(place, (json.dumps(entries) if isinstance(entries, list) else entries).replace("DIR", str(tree.path)))
        return tree.rows(*(args or ["."]))


def verdict(entries, text=BRANCH, name="a.cu", files=(), **more):
    found = rows({name: text, **dict(files)}, entries, **more)
    return [row.split(" ")[-1] for row in found if row.startswith(name)]


def test_branch():
    equal(verdict(None), ["report", "report"])
    equal(verdict([entry("a.cu", "nvcc -DENABLE_ROUTER -c a.cu")]), ["report", "rewrite"])
    equal(verdict([entry("a.cu", "nvcc -c a.cu")]), ["report", "report"])


FLAGS = {
    "arguments": ["nvcc", "-DENABLE_ROUTER=1", "a.cu"],
    "define apart": "nvcc -D ENABLE_ROUTER a.cu",
    "long define": "nvcc --define-macro ENABLE_ROUTER=1 a.cu",
    "long define, joined": "nvcc --define-macro=ENABLE_ROUTER a.cu",
    "ccache and env": "env X=1 ccache sccache nvcc -ccbin /usr/bin/g++ -DENABLE_ROUTER -x cu a.cu",
    "flags that clang does not know": "nvcc -forward-unknown-to-host-compiler --generate-code=arch=compute_90a,code=[sm_90a] "
                                      "--expt-relaxed-constexpr -Xptxas -v -DENABLE_ROUTER -rdc=true a.cu",
    "host compiler": "nvcc -Xcompiler=-fPIC,-DENABLE_ROUTER a.cu",
    "host compiler, apart": "nvcc -Xcompiler -fPIC -Xcompiler -DENABLE_ROUTER a.cu",
    "quotes": "nvcc \"-DENABLE_ROUTER=\\\"x y\\\"\" 'a.cu'",
    "two commands": "nvcc -M a.cu -o a.d && nvcc -DENABLE_ROUTER -c a.cu -o a.o",
    "a folder first": "cd DIR/sub && nvcc -DENABLE_ROUTER -c ../a.cu",
    "a response file": "nvcc @flags.rsp a.cu",
    "an options file": "nvcc --options-file flags.rsp -x cu -c a.cu",
    "an options file, joined": "nvcc -optf=flags.rsp -c a.cu",
    "a response file in another one": "nvcc @more.rsp a.cu",
    "undefined, and defined again": "nvcc -UENABLE_ROUTER -DENABLE_ROUTER a.cu",
    "a forced header": "nvcc -include config.h a.cu",
    "a long forced header": "nvcc --pre-include=config.h a.cu",
}
FILES = {"flags.rsp": '"-DENABLE_ROUTER"\n', "more.rsp": "-O3 @flags.rsp", "config.h": "#pragma once\n#define ENABLE_ROUTER 1\n"}


def test_flags():
    wrong = [name for name, command in FLAGS.items()
             if verdict([entry("a.cu", command)], files=FILES) != ["report", "rewrite"]]
    equal(wrong, [])
    for command in ("nvcc -DENABLE_ROUTER -UENABLE_ROUTER a.cu", "nvcc -DENABLE_ROUTER2 a.cu", "nvcc @missing.rsp a.cu",
                    "nvcc -M -DENABLE_ROUTER x.cu && nvcc a.cu", "nvcc -o ENABLE_ROUTER a.cu", "", "nvcc -D"):
        equal(verdict([entry("a.cu", command)], files=FILES), ["report", "report"])


def test_paths():
    """Relative folders, absolute files, a database in a build folder, and one of another checkout."""
    flags = "nvcc -DENABLE_ROUTER "
    tree = {"csrc/a.cu": BRANCH}
    want = ["csrc/a.cu:2 dsv3_router_gemm report", "csrc/a.cu:4 dsv3_router_gemm rewrite"]
    equal(rows(tree, [entry("../csrc/a.cu", flags + "../csrc/a.cu", "DIR/build")], "build/compile_commands.json"), want)
    equal(rows(tree, [entry("../csrc/a.cu", flags + "../csrc/a.cu", ".")], "build-release/compile_commands.json"), want)
    equal(rows(tree, [entry("DIR/csrc/a.cu", flags + "DIR/csrc/a.cu", "/nowhere")], "cmake-build-debug/compile_commands.json"), want)
    equal(rows(tree, [entry("/workspace/x/csrc/a.cu", flags + "/workspace/x/csrc/a.cu", "/workspace/x/build")]), want)
    with Tree({".git/HEAD": "ref: x\n", **tree}) as path:  # a part of a repository
        path.put("build/compile_commands.json", json.dumps([entry("../csrc/a.cu", flags + "a.cu", ".")]))
        equal(path.rows("csrc"), ["a.cu:2 dsv3_router_gemm report", "a.cu:4 dsv3_router_gemm rewrite"])


def test_fix():
    with Tree({"a.cu": BRANCH}) as tree:
        tree.put("compile_commands.json", json.dumps([entry("a.cu", "nvcc -DENABLE_ROUTER a.cu", ".")]))
        tree.run("fix", *ARGS, ".")
        equal(tree.get("a.cu"), "#include <ATen/ATen.h>\n#include \"sgl_kernel_jit/torch.h\"\n" + DECLARE.split("\n", 1)[1]
              + "#ifdef ENABLE_ROUTER\n" + CALL.replace("dsv3", "sgl_kernel_jit::dsv3") + "#endif\n")


def test_message():
    with Tree({"a.cu": BRANCH, "b.cu": BRANCH}) as tree:
        tree.put("build/compile_commands.json", json.dumps([entry("../a.cu", "nvcc -DENABLE_ROUTER ../a.cu", "."),
                                                            entry("../b.cu", "nvcc ../b.cu", ".")]))
        out = tree.run("scan", *ARGS, ".").out
        contains(out, "a.cu:4:39: rewrite dsv3_router_gemm: dsv3_router_gemm left sgl_kernel in 0.4.5; fix makes it "
                      "sgl_kernel_jit::dsv3_router_gemm; the branch is compiled by build/compile_commands.json\n")
        contains(out, "b.cu:4:39: report dsv3_router_gemm: dsv3_router_gemm left sgl_kernel in 0.4.5; in a branch that no command of the "
                      "compile database compiles, nor is it compiled without macros;")


def test_commands_disagree():
    """One command makes the name a macro: a person has to look, in whatever order they come."""
    plain, macro = entry("a.cu", "nvcc -c a.cu"), entry("a.cu", "nvcc -Ddsv3_router_gemm=my_router -c a.cu")
    text = DECLARE + CALL
    equal(verdict([plain], text), ["report", "rewrite"])
    equal(verdict([plain, macro], text), ["report", "report"])
    equal(verdict([macro, plain], text), ["report", "report"])
    other = entry("a.cu", "nvcc -DENABLE_ROUTER -DLOCAL a.cu")
    branch = ("#ifdef LOCAL\nstatic void dsv3_router_gemm(at::Tensor&, const at::Tensor&, const at::Tensor&) {}\n#endif\n" + BRANCH)
    equal(verdict([entry("a.cu", "nvcc -DENABLE_ROUTER a.cu"), other], branch)[-1], "report")


def test_folders():
    """Two headers of one name: the include folder says which one, and that one proves the owner."""
    tree = {"src/a.cu": "#include \"api.h\"\n" + CALL, "one/api.h": DECLARE, "two/api.h": "namespace mine { void dsv3_router_gemm(int); }\n",
            "one/deep/er/x.h": "", "src/b.cu": "#include \"api.h\"\n"}
    one = rows(tree, [entry("src/a.cu", "nvcc -Ione -c src/a.cu")])
    equal([row for row in one if row.startswith("src")], ["src/a.cu:2 dsv3_router_gemm rewrite"])
    for flags in ("-I one", "-isystem=one", "--include-path one", "-iquote DIR/one"):
        equal(rows(tree, [entry("src/a.cu", f"nvcc {flags} -c src/a.cu")]), one)


def test_header():
    """A header is compiled as the sources that include it are."""
    header = "#pragma once\n" + DECLARE + "#if defined(ENABLE_ROUTER)\ninline " + CALL + "#endif\n"
    tree = {"include/a.h": header, "include/b.h": "#include \"a.h\"\n", "src/x.cu": "#include \"b.h\"\n"}
    equal(rows(tree, [entry("src/x.cu", "nvcc -Iinclude -DENABLE_ROUTER src/x.cu")]),
          ["include/a.h:3 dsv3_router_gemm report", "include/a.h:5 dsv3_router_gemm rewrite"])


def test_language():
    """A .c file that is compiled as CUDA is C++."""
    equal(verdict(None, DECLARE + CALL, "a.c"), [])
    equal(verdict([entry("a.c", "nvcc -x cu a.c")], DECLARE + CALL, "a.c"), ["report", "report"])


def test_nothing_is_lost():
    """Stale, partial and wrong databases: each finding without one is a finding with it."""
    tree = {"a.cu": DECLARE + CALL, "b.cu": BRANCH, "c.h": DECLARE + "#ifndef NO\ninline " + CALL + "#endif\n"}
    without = {row.rsplit(" ", 1)[0] for row in rows(tree, None)}
    for entries in ([], [entry("gone.cu", "nvcc gone.cu")], [entry("a.cu", "nvcc -DNO -Ddsv3_router_gemm=x a.cu")],
                    [entry("b.cu", "nvcc -DNO -include c.h b.cu"), entry("a.cu")],
                    [entry("b.cu", "nvcc '-DX=/*' '-DA=1\\' '-Dq(=' -DENABLE_ROUTER=0 -I/ -I.. -include /etc/passwd b.cu")]):
        have = {row.rsplit(" ", 1)[0] for row in rows(tree, entries)}
        equal(without - have, set())


HOSTILE = {
    "no JSON": "{", "another type": '{"a": 1}', "a number": "3", "nothing": "", "rows of other types": "[1, null, [], {}, \"x\"]",
    "fields of other types": '[{"directory": 1, "file": [], "command": {}, "arguments": "x"}]',
    "arguments of other types": '[{"directory": "/", "file": "a.cu", "arguments": [1, null, "", "-D", [], "@", "-include"]}]',
    "deep": "[" * 100000, "a NUL": '[{"directory": "/\\u0000x", "file": "a\\u0000.cu", "command": "x"}]',
    "an unended quote": '[{"directory": "/", "file": "a.cu", "command": "nvcc \\"-DENABLE_ROUTER a.cu"}]',
    "a response file that names itself": '[{"directory": "DIR", "file": "a.cu", "command": "nvcc @self.rsp a.cu"}]',
    "a pipe": '[{"directory": "DIR", "file": "a.cu", "command": "nvcc @pipe a.cu"}]',
    "many dots": '[{"directory": "/", "file": "' + "../" * 5000 + 'a.cu", "command": "nvcc a.cu"}]',
    "a macro that grows": '[{"directory": "DIR", "file": "a.cu", "command": "nvcc -DENABLE_ROUTER '
                          + " ".join(f"'-DA{i}=A{i + 1} A{i + 1} A{i + 1} A{i + 1}'" for i in range(30)) + ' -Dat=A0 a.cu"}]',
}


def test_hostile():
    for name, text in HOSTILE.items():
        with Tree({"a.cu": BRANCH, "self.rsp": "@self.rsp @self.rsp"}) as tree:
            os.mkfifo(tree.path / "pipe")
            tree.put("compile_commands.json", text.replace("DIR", str(tree.path)))
            start = time.monotonic()
            done = tree.run("scan", *ARGS, ".")
            if time.monotonic() - start > 10 or done.out.count("dsv3_router_gemm left") != 2:
                raise AssertionError(f"{name}: {done.out} {done.err}")
    with Tree({"a.cu": BRANCH}) as tree:
        tree.put("compile_commands.json", "[\n{")
        notes = tree.sarif()["runs"][0]["invocations"][0]["toolExecutionNotifications"]
        contains(json.dumps(notes), "compile database not used: line 2")
        equal(tree.run("scan", *ARGS, ".").returncode, 3)


def test_large():
    """2,000 entries with long commands cost little, and do not depend on the number of threads."""
    files = {f"src/m{i}/k.cu": ("#include \"a.h\"\n" if i % 500 else BRANCH) for i in range(2000)}
    files["include/a.h"] = DECLARE
    entries = [entry(f"src/m{i}/k.cu", "nvcc " + " ".join(f"-DFLAG_{k}={k}" for k in range(60)) + (" -DENABLE_ROUTER" if i == 500 else "")
                     + f" -Iinclude -c src/m{i}/k.cu -o m{i}.o") for i in range(2000)]
    with Tree(files) as tree:
        tree.put("compile_commands.json", json.dumps(entries).replace("DIR", str(tree.path)))
        start = time.monotonic()
        first = tree.rows("-j", "1", ".")
        spent = time.monotonic() - start
        equal(tree.rows("-j", "4", "."), first)
        equal([row for row in first if row.endswith("rewrite")], ["src/m500/k.cu:4 dsv3_router_gemm rewrite"])
        if spent > 8:
            raise AssertionError(f"{spent:.1f} s")


main(globals())
