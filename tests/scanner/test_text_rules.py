#!/usr/bin/env python3
"""The text front beyond the contract's cases: one small tree each, and exactly the results that it must give."""
from tool import ARGS, Tree, equal, main

CASES = {
    # build entries
    "an entry relative to the folder of its build file": (
        {"csrc/gemm/CMakeLists.txt": "add_library(k\n  dsv3_fused_a_gemm.cu\n  fp8_gemm.cu)\n"},
        ["csrc/gemm/CMakeLists.txt:2 dsv3_fused_a_gemm report"]),
    "the same name in another folder is another file": (
        {"csrc/moe/CMakeLists.txt": "add_library(k dsv3_fused_a_gemm.cu moe/dsv3_fused_a_gemm.cu ${D}/dsv3_fused_a_gemm.cu)\n"}, []),
    "an object, a longer name and a sentence's end": (
        {"BUILD": "a/gemm/dsv3_fused_a_gemm.cu.o a/gemm/dsv3_fused_a_gemm.cuh a/gemm/x-dsv3_fused_a_gemm.cu\n",
         "README": "Built from csrc/gemm/dsv3_fused_a_gemm.cu.\n"},
        ["README:1 dsv3_fused_a_gemm mention"]),
    "strings that are joined, and strings that are only neighbours": (
        {"setup.py": 'import os\na = os.path.join("csrc", "gemm",\n    "dsv3_fused_a_gemm.cu")\n'
                     'b = ["gemm/other.cu", "dsv3_fused_a_gemm.cu"]\nc = "csrc/gemm/" + "dsv3_fused_a_gemm.cu"\n'},
        ["setup.py:3 dsv3_fused_a_gemm report", "setup.py:5 dsv3_fused_a_gemm report"]),
    "windows separators": (
        {"build.cmake": "set(S csrc\\\\gemm\\\\dsv3_fused_a_gemm.cu csrc\\gemm\\dsv3_router_gemm_entry.cu)\n"},
        ["build.cmake:1 dsv3_fused_a_gemm report", "build.cmake:1 dsv3_router_gemm report"]),
    "a deleted test below the kernel's folder only": (
        {"ci.sh": "pytest tests/test_dsv3_router_gemm.py\npytest ../sgl-kernel/tests/test_dsv3_router_gemm.py\n",
         "sgl-kernel/Makefile": "t:\n\tpytest tests/test_dsv3_router_gemm.py\n"},
        ["ci.sh:2 dsv3_router_gemm report", "sgl-kernel/Makefile:2 dsv3_router_gemm report"]),
    "a path in a docstring is no entry": (
        {"a.py": '"""See csrc/gemm/dsv3_fused_a_gemm.cu for more."""\n'}, ["a.py:1 dsv3_fused_a_gemm mention"]),
    "an import after other statements, and a printed sentence": (
        {"a.sh": "python3 -c 'x = 1; import sgl_kernel as k; k.bmm_fp8(x)'\n"
                 "python3 -c 'print(\"sgl_kernel.bmm_fp8 it is\")'\n"},
        ["a.sh:1 bmm_fp8 report", "a.sh:2 bmm_fp8 mention"]),
    # paths that do not stand there as a whole
    "a folder in a variable": (
        {"CMakeLists.txt": "set(K csrc)\nset(G ${K}/gemm)\nadd_library(k ${G}/dsv3_fused_a_gemm.cu ${M}/dsv3_fused_a_gemm.cu)\n",
         "Makefile": "GEMM = csrc/gemm  # all of them\nMOE := csrc/moe\nS = $(GEMM)/dsv3_fused_a_gemm.cu\nT = $(MOE)/dsv3_fused_a_gemm.cu\n",
         "a.sh": 'G="csrc/gemm"\nnvcc "$G/dsv3_fused_a_gemm.cu"\nnvcc ${G}/dsv3_router_gemm_entry.cu\n',
         "setup.py": 'C = P(__file__).parent / "csrc"\nG = C / "gemm"\ns = [G / "dsv3_fused_a_gemm.cu", C / "dsv3_fused_a_gemm.cu",\n'
                     '     f"{G}/dsv3_fused_a_gemm.cu",\n     os.path.join(G, "dsv3_fused_a_gemm.cu")]\n'},
        ["CMakeLists.txt:3 dsv3_fused_a_gemm report", "Makefile:3 dsv3_fused_a_gemm report", "a.sh:2 dsv3_fused_a_gemm report",
         "a.sh:3 dsv3_router_gemm report", "setup.py:3 dsv3_fused_a_gemm report", "setup.py:4 dsv3_fused_a_gemm report",
         "setup.py:5 dsv3_fused_a_gemm report"]),
    "a variable that stands for itself": (
        {"Makefile": "A = $(B)/gemm\nB = $(A)\nC = $(C)/x\nS = $(B)/dsv3_fused_a_gemm.cu $(C)/dsv3_fused_a_gemm.cu\n"},
        ["Makefile:4 dsv3_fused_a_gemm report"]),
    "a folder in a variable of another library": (
        {"gemm/setup.py": 'import fi\ns = [fi.CSRC / "bmm_fp8.cu", os.path.join(fi.CSRC, "bmm_fp8.cu"), fi.CSRC + "/bmm_fp8.cu"]\n'}, []),
    "Bazel labels": (
        {"BUILD": 'a(srcs = ["//k/csrc/gemm:dsv3_fused_a_gemm.cu", "//k/csrc/moe:dsv3_router_gemm_entry.cu"])\n',
         "csrc/gemm/BUILD.bazel": 'a(srcs = [":dsv3_fused_a_gemm.cu"])\n'},
        ["BUILD:1 dsv3_fused_a_gemm report", "csrc/gemm/BUILD.bazel:1 dsv3_fused_a_gemm report"]),
    "commands that run in another folder": (
        {"a.sh": "cd sgl-kernel\npytest tests/test_dsv3_router_gemm.py\ncd ..\npytest tests/test_dsv3_router_gemm.py\n"
                 "(cd sgl-kernel/tests && python3 test_dsv3_fused_a_gemm.py)\n",
         "Makefile": "t:\n\tcd sgl-kernel && pytest tests/test_dsv3_router_gemm.py\n\tpytest tests/test_dsv3_router_gemm.py\n"
                     "\tcd sgl-kernel && \\\n\t  pytest tests/test_dsv3_router_gemm.py\n",
         "Dockerfile": "WORKDIR /x/sgl-kernel\nRUN pytest tests/test_dsv3_router_gemm.py\nWORKDIR /x\nRUN cd other\n"
                       "RUN pytest tests/test_dsv3_router_gemm.py\n",
         "ci.yml": "steps:\n- working-directory: sgl-kernel\n  run: pytest tests/test_dsv3_router_gemm.py\n"
                   "- run: mkdir -p dir sgl-kernel && pytest tests/test_dsv3_router_gemm.py\n- run: |\n    cd sgl-kernel\n    pytest tests/test_dsv3_router_gemm.py\n"},
        ["Dockerfile:2 dsv3_router_gemm report", "Makefile:2 dsv3_router_gemm report", "Makefile:5 dsv3_router_gemm report",
         "a.sh:2 dsv3_router_gemm report", "a.sh:5 dsv3_fused_a_gemm report", "ci.yml:3 dsv3_router_gemm report",
         "ci.yml:7 dsv3_router_gemm report"]),
    "patterns stand for the files that are there": (
        {"CMakeLists.txt": "file(GLOB A csrc/gemm/dsv3_fused*.cu)\n# dsv3_fused_a_gemm\n"},
        ["CMakeLists.txt:2 dsv3_fused_a_gemm mention"]),
    "a Python command in a step of a pipeline": (
        {"Jenkinsfile": 'sh """\n  python3 -c \'import sgl_kernel; sgl_kernel.bmm_fp8(1)\'\n  it was sgl_kernel.bmm_fp8 before\n"""\n'},
        ["Jenkinsfile:2 bmm_fp8 report", "Jenkinsfile:3 bmm_fp8 mention"]),
    # documentation
    "owners in documentation": (
        {"a.md": "flashinfer.bmm_fp8\nsgl_kernel.bmm_fp8\nx::bmm_fp8\n::bmm_fp8\nsgl_kernel_jit.dsv3_router_gemm\n"
                 "torch.ops.sgl_kernel.bmm_fp8\ntorch.ops.other.bmm_fp8\na->bmm_fp8\nbmm_fp8.py\nops/bmm_fp8\n"
                 "from flashinfer import bmm_fp8\n--bmm_fp8\nmy_bmm_fp8 bmm_fp8x\n"
                 "sglang.kernels.ops.gemm.dsv3_router_gemm\n"},
        ["a.md:2 bmm_fp8 mention", "a.md:4 bmm_fp8 mention", "a.md:6 bmm_fp8 mention"]),
    "a name that lives on elsewhere": (
        {"a.md": "flash_attn_varlen_func\nsgl_kernel.flash_attn.flash_attn_varlen_func\n"
                 "sgl_kernel._fa4_interface.flash_attn_varlen_func\n"},
        ["a.md:3 flash_attn_varlen_func mention"]),
    # scripts
    "values, sentences and options of a shell script": (
        {"a.sh": "OPS='bmm_fp8 merge_state'\npytest -k bmm_fp8\nrun --op sgl_kernel::bmm_fp8\n"
                 "run --op 'sgl_kernel.bmm_fp8'\necho bmm_fp8\necho \"needs sgl_kernel.bmm_fp8 to be there\"\n"},
        ["a.sh:1 bmm_fp8 mention", "a.sh:1 merge_state mention", "a.sh:3 bmm_fp8 report", "a.sh:4 bmm_fp8 report",
         "a.sh:5 bmm_fp8 mention", "a.sh:6 bmm_fp8 mention"]),
    "an alias in a here-document, and help text in another": (
        {"a.sh": "python3 - <<EOF\nimport sgl_kernel as k\n# bmm_fp8 is gone\nk.bmm_fp8(1)\nEOF\n"
                 "cat <<-'HELP'\n\tUses bmm_fp8.\n\tHELP\nbmm_fp8\n"},
        ["a.sh:3 bmm_fp8 mention", "a.sh:4 bmm_fp8 report", "a.sh:7 bmm_fp8 mention"]),
    "apostrophes and shifts do not open a string": (
        {"a.sh": "# don't\necho $((1<<2))\npython3 -c \"from sgl_kernel import bmm_fp8\" # it's bmm_fp8\n# bmm_fp8\n"},
        ["a.sh:3 bmm_fp8 report", "a.sh:4 bmm_fp8 mention"]),
    "a program with quotes inside": (
        {"a.sh": "python3 -c '\nimport sgl_kernel\nprint(\"it runs\", sgl_kernel.merge_state(1))\n'\n"},
        ["a.sh:3 merge_state report"]),
    "a script is known by its first line": (
        {"tool": "#!/bin/sh\n# bmm_fp8\npython3 -c 'from sgl_kernel import bmm_fp8'\n",
         "pytool": "#!/usr/bin/env python3\nfrom sgl_kernel import bmm_fp8\n"},
        ["pytool:2 bmm_fp8 report", "tool:2 bmm_fp8 mention", "tool:3 bmm_fp8 report"]),
    # YAML
    "programs in YAML": (
        {"a.yml": "a:\n  # bmm_fp8\n  run: python -c 'import sgl_kernel; sgl_kernel.bmm_fp8'\n  shell: python\n"
                  "  script: |\n    import sgl_kernel as k\n    k.merge_state(1, 2)\n  bmm_fp8: sgl_kernel.bmm_fp8\n"
                  "  list:\n    - bmm_fp8\n    - python3 -c \"from sgl_kernel import bmm_fp8\"\n"
                  "  more: >-\n    echo it's bmm_fp8\n"},
        ["a.yml:2 bmm_fp8 mention", "a.yml:3 bmm_fp8 report", "a.yml:7 merge_state report", "a.yml:11 bmm_fp8 report",
         "a.yml:13 bmm_fp8 mention"]),
    # configuration
    "entry points and labels": (
        {"setup.cfg": "[options.entry_points]\nk =\n    gate = sgl_kernel.gemm:dsv3_router_gemm\n    merge = other:bmm_fp8\n"
                      "# bmm_fp8\n[tool]\nname = bmm_fp8\nskip = sgl_kernel.bmm_fp8-old\n",
         "a.toml": "k = 'sgl_kernel.bmm_fp8'\nbmm_fp8 = 1\n"},
        ["a.toml:1 bmm_fp8 report", "setup.cfg:3 dsv3_router_gemm report", "setup.cfg:5 bmm_fp8 mention"]),
    # other languages
    "comments and strings of other languages": (
        {"a.go": 'x := "bmm_fp8" // bmm_fp8\ny := `python -c "from sgl_kernel import bmm_fp8"`\nz := "no bmm_fp8 here"\nbmm_fp8()\n',
         "a.rs": "fn f<'a>(x: &'a str) {} // bmm_fp8\n",
         "a.lua": "-- bmm_fp8\nlocal x = 'sgl_kernel::bmm_fp8'\n",
         "a.el": "; don't use bmm_fp8\n(bmm_fp8)\n"},
        ["a.el:1 bmm_fp8 mention", "a.go:1 bmm_fp8 mention", "a.go:2 bmm_fp8 report", "a.go:3 bmm_fp8 mention",
         "a.lua:1 bmm_fp8 mention", "a.lua:2 bmm_fp8 report", "a.rs:1 bmm_fp8 mention"]),
    "templates of Python and C++": (
        {"a.py.in": "import @x@\nfrom sgl_kernel import bmm_fp8\n# bmm_fp8\n",
         "k.cu.jinja": "{% if x %}\n// bmm_fp8\n  dsv3_fused_a_gemm(o, a, b); x.dsv3_fused_a_gemm(1);\n{% endif %}\n"
                       '#include "gemm/dsv3_fused_a_gemm.cu"\n',
         "c.pyx": "cimport numpy\nimport sgl_kernel\ndef f():\n    return sgl_kernel.bmm_fp8\n"},
        ["a.py.in:2 bmm_fp8 report", "a.py.in:3 bmm_fp8 mention", "c.pyx:4 bmm_fp8 report", "k.cu.jinja:2 bmm_fp8 mention",
         "k.cu.jinja:3 dsv3_fused_a_gemm report"]),
    "an unknown kind of text": (
        {"a.unknown": "bmm_fp8\nsgl_kernel.bmm_fp8\nfrom sgl_kernel import bmm_fp8\nother.bmm_fp8\n"},
        ["a.unknown:2 bmm_fp8 mention", "a.unknown:3 bmm_fp8 report"]),
    "the exact mangled name": (
        {"exports.map": "_Z17dsv3_fused_a_gemmRN2at6TensorERKS0_S3_\n",
         "a.mk": "LDFLAGS = -Wl,-u,_Z17dsv3_fused_a_gemmRN2at6TensorERKS0_S3_ -u _Z17dsv3_fused_a_gemmv\n"},
        ["a.mk:1 dsv3_fused_a_gemm report"]),
    # patches
    "only added lines of a patch": (
        {"a.patch": "Drop bmm_fp8.\n\ndiff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,4 +1,5 @@\n"
                    " import sgl_kernel as k\n-k.bmm_fp8(1)\n+k.merge_state(1)\n+# bmm_fp8\n k.bmm_fp8(2)\n \n"
                    "--- a/CMakeLists.txt\n+++ b/CMakeLists.txt\n@@ -0,0 +1,2 @@\n+  csrc/gemm/dsv3_fused_a_gemm.cu\n"
                    "+  csrc/gemm/other.cu\n--- a/doc.md\n+++ b/doc.md\n@@ -1 +1 @@\n-bmm_fp8\n+bmm_fp8!\n"
                    "--- a/a.json\n+++ b/a.json\n@@ -1 +1 @@\n-{}\n+{\"bmm_fp8\": 1}\n"},
        ["a.patch:1 bmm_fp8 mention", "a.patch:9 merge_state report", "a.patch:10 bmm_fp8 mention",
         "a.patch:16 dsv3_fused_a_gemm report", "a.patch:22 bmm_fp8 mention"]),
    "a line that only looks like a header": (
        {"a.diff": "--- a/x.md\n+++ b/x.md\n@@ -1,2 +1,2 @@\n--- bmm_fp8\n+++ merge_state\n x\n+++ bmm_fp8\n"},
        ["a.diff:5 merge_state mention"]),
    "strange bytes": (
        {"a.md": b"\xff\xfe\x00no text", "b.md": b"\xff bmm_fp8\r\n\x0cmerge_state", "c.sh": b"'bmm_fp8", "d.yml": b"a: |",
         "e.patch": b"@@ -1 +1 @@\n+++ ", "f.sh": b"cat <<E", "g.toml": b"\"", "h.go": b"/*bmm_fp8"},
        ["b.md:1 bmm_fp8 mention", "b.md:2 merge_state mention", "h.go:1 bmm_fp8 mention"]),
    "data": (
        {"a.json": '{"k": "sgl_kernel.bmm_fp8"}', "a.csv": "bmm_fp8", "a.log": "bmm_fp8", "a.svg": "<!-- bmm_fp8 -->"}, []),
}


def make(files, rows):
    def test():
        with Tree(files) as tree:
            equal(tree.rows(), rows)
            tree.run("fix", *ARGS, ".")
            for path in files:  # nothing of this front is ever edited
                if path.endswith((".py", "pytool")):
                    continue
                content = files[path] if isinstance(files[path], bytes) else files[path].encode()
                equal((tree.path / path).read_bytes(), content)
    return test


main({"test_" + name: make(*case) for name, case in CASES.items()})
