#!/usr/bin/env python3
"""Requirement pins: what they make the defaults of --kernel and --to, and when the summary names them."""
import subprocess
from tool import ARGS, Tree, contains, equal, main, run

OLD = "from sgl_kernel import dsv3_router_gemm\n"


def said(files, *args):
    """The line on standard error that says what is checked against, without its start."""
    with Tree({"a.py": "", **files}) as tree:
        lines = tree.run("scan", *args, ".").err.splitlines()
        equal(len(lines) <= 1, True)
        return lines[0].removeprefix("sgl-migrate: checking against ") if lines else ""


def decides(files, kernel, to="jit (default)"):
    equal((files, said(files)), (files, f"kernel {kernel}, rewriting to {to}"))


def one(path, text, release, place, pin, *more):
    decides({path: text}, f"{release} ({path}:{place}: {pin}{''.join(more)})")


def test_no_pins():
    for files in ({}, {"requirements.txt": "torch==2.11.0\nsgl-kernel\nsgl_kernel_npu==0.3\nmy-sgl-kernel==0.3.21\n"},
                  {"pyproject.toml": "[project]\nname = 'sglang-kernel'\ndependencies = ['sgl-kernel']\n[tool.uv.sources]\nsgl-kernel = { index = 'x' }\n"},
                  {"notes.txt": "sgl-kernel==0.3.21\n"}, {"a.py": "x = 'sgl-kernel==0.3.21'\n"},
                  {"setup.sh": "echo sgl-kernel==0.3.21\n"}, {"requirements.txt": "sgl-kernel==\nsgl-kernel==new\nsglang>=\n# sgl-kernel==0.3.21\n"}):
        decides(files, "0.4.10 (default)")


def test_requirements_file():
    for text, line, release in (
        ("sgl-kernel==0.3.21\n", 1, "0.3.21"),
        ("# a\r\n\r\nSGL_Kernel == 0.3.21 ; sys_platform == 'linux'  # b\r\n", 3, "0.3.21"),
        ("torch\nsglang.kernel===0.4.5", 2, "0.4.5"),
        ("sgl-kernel[all]==0.3.21 --hash=sha256:00\n", 1, "0.3.21"),
        ("sglang-kernel == 0.4.4+cu130 \\\n  --hash=sha256:00\n", 1, "0.4.4+cu130"),
        ("sgl-kernel @ https://example.org/whl/v0.3.21/sgl_kernel-0.3.21+cu124-cp310-abi3-linux_x86_64.whl\n", 1, "0.3.21+cu124"),
        ("https://example.org/sglang_kernel-0.4.5.tar.gz#sha256=00\n", 1, "0.4.5"),
    ):
        equal((text, said({"requirements.txt": text}).split(" (")[0]), (text, f"kernel {release}"))
        contains(said({"requirements.txt": text}), f" (requirements.txt:{line}: ")
    one("requirements/cuda.txt", "sglang-kernel==0.4.5\n", "0.4.5", 1, "sglang-kernel==0.4.5")
    one("dev-requirements.in", "sglang-kernel==0.4.5\n", "0.4.5", 1, "sglang-kernel==0.4.5")


def test_includes():
    files = {"requirements.txt": "-r deps/base.txt\n-c https://example.org/c.txt\n", "deps/base.txt": "-r ../more/gpu.list\n--requirement=base.txt\n",
             "more/gpu.list": "\nsgl-kernel==0.3.21\n"}
    decides(files, "0.3.21 (deps/../more/gpu.list:2: sgl-kernel==0.3.21)")
    decides({"requirements.txt": "-r requirements.txt\n-rnone.txt\nsgl-kernel==0.3.21\n"}, "0.3.21 (requirements.txt:3: sgl-kernel==0.3.21)")


def test_ranges_mean_the_newest_release():
    for specifier, release in (
        (">=0.4,<0.4.3", "0.4.2.post2"), ("~=0.4.1", "0.4.10"), ("~=0.3", "0.4.10"), ("==0.3.*", "0.3.21"), ("<0.4", "0.3.21"),
        (">0.4.6,<0.4.7", None), ("<=0.4.6,!=0.4.6", "0.4.5"), (">=0.3,!=0.4.*", "0.3.21"), (">=0.4.6,<=0.4.6.post1", "0.4.6.post1"),
        (">=7", None), ("(>=0.4,<0.4.2)", "0.4.1.post1"),
    ):
        have = said({"requirements.txt": f"sglang-kernel {specifier}\n"})
        plain = specifier.strip("()")
        want = f"kernel {release} (requirements.txt:1: sglang-kernel{plain}, of which it is the newest), rewriting to jit (default)" \
            if release else "kernel 0.4.10 (default), rewriting to jit (default)"
        equal((specifier, have), (specifier, want))
    for specifier, release in (("^0.3.20", "0.3.21"), ("~0.4.1", "0.4.10"), ("~0.3", "0.3.21"), (">=0.4, <0.4.3", "0.4.2.post2")):
        contains(said({"pyproject.toml": f'[tool.poetry.dependencies]\nsgl-kernel = "{specifier}"\n'}), f"kernel {release} (pyproject.toml:2: ")


def test_pyproject():
    head = "[project]\nname = 'x'\n"
    one("pyproject.toml", head + 'dependencies = ["torch", "sglang-kernel==0.4.5"]\n', "0.4.5", 3, "sglang-kernel==0.4.5")
    one("pyproject.toml", head + "[project.optional-dependencies]\ngpu = [\n  'sglang-kernel == 0.4.5 ; sys_platform == \"linux\"',  # why\n]\n",
        "0.4.5", 5, "sglang-kernel==0.4.5")
    one("pyproject.toml", "[dependency-groups]\ndev = ['sglang-kernel==0.4.5']\n", "0.4.5", 2, "sglang-kernel==0.4.5")
    one("python/pyproject_other.toml", "d = ['sglang-kernel==0.4.5']\n", "0.4.5", 1, "sglang-kernel==0.4.5")
    for line in ('sgl-kernel = "0.3.21"', 'sgl-kernel = "==0.3.21"', '"sgl-kernel" = { version = "0.3.21", optional = true }',
                 'sgl_kernel={extras = ["a"], version="==0.3.21"}'):
        one("pyproject.toml", "[tool.poetry.dependencies]\n" + line + "\n", "0.3.21", 2, "sgl-kernel==0.3.21")
    decides({"pyproject.toml": "d = [\n# 'sglang-kernel==0.4.5',\n]\n"}, "0.4.10 (default)")
    one("Pipfile", '[packages]\nsgl-kernel = "==0.3.21"\n', "0.3.21", 2, "sgl-kernel==0.3.21")


def test_setup():
    one("setup.py", "VERSION = '0.3.21'\nsetup(install_requires=['a', f'sgl-kernel=={VERSION}'])\n", "0.3.21", 2, "sgl-kernel==0.3.21")
    one("setup.py", 'setup(install_requires=[\n    "sgl-kernel==0.3.21",\n])\n', "0.3.21", 2, "sgl-kernel==0.3.21")
    one("setup.cfg", "[options]\ninstall_requires =\n    # c\n    sgl-kernel==0.3.21\n", "0.3.21", 4, "sgl-kernel==0.3.21")
    decides({"setup.cfg": "[options]\n; sgl-kernel==0.3.21\n"}, "0.4.10 (default)")


def test_environment():
    one("environment.yml", "dependencies:\n  - python=3.11\n  - sgl-kernel=0.3.20\n", "0.3.20", 3, "sgl-kernel=0.3.20", ", of which it is the newest")
    one("env-gpu.yaml", "dependencies:\n  - pip:\n    - sgl-kernel==0.3.20\n", "0.3.20", 3, "sgl-kernel==0.3.20")


def test_installs():
    one("docker/Dockerfile.gpu", "FROM x\nRUN pip install torch \\\n  # why\n  sgl-kernel==0.3.20 && true\n", "0.3.20", 4, "sgl-kernel==0.3.20")
    one("Dockerfile", "ARG SGL_KERNEL_VERSION=0.3.20\nRUN pip install sgl-kernel==${SGL_KERNEL_VERSION}\n", "0.3.20", 2, "sgl-kernel==0.3.20")
    one("Dockerfile", "ARG V=0.3.20\nRUN uv pip install https://x.org/v$V/sgl_kernel-${V}+cu130-cp310-abi3-linux_x86_64.whl\n", "0.3.20", 2, "sgl-kernel==0.3.20")
    one(".github/workflows/test.yml", "env:\n  KERNEL: '0.3.20'\njobs:\n  a:\n    - run: pip install \"sgl-kernel==$KERNEL\"\n", "0.3.20", 5, "sgl-kernel==0.3.20")
    one("build.sh", "pip install -U 'sgl-kernel>=0.3,<0.3.20'\n", "0.3.19", 1, "sgl-kernel>=0.3,<0.3.20", ", of which it is the newest")
    decides({"Dockerfile": "RUN pip install sgl-kernel==${UNKNOWN}\n# pip install sgl-kernel==0.3.20\nRUN git clone sgl-kernel-0.3.20.git\n"}, "0.4.10 (default)")


def test_locks():
    one("uv.lock", '[[package]]\nname = "sglang-kernel"\nversion = "0.4.5"\n\n[[package]]\nname = "x"\nversion = "9"\n', "0.4.5", 3, "sglang-kernel==0.4.5")
    one("poetry.lock", '[[package]]\nname = "sgl-kernel"\nversion = "0.3.21"\ndescription = ""\n', "0.3.21", 3, "sgl-kernel==0.3.21")
    decides({"uv.lock": '[[package]]\nname = "sgl-kernel"\n[[package]]\nname = "x"\nversion = "0.3.21"\n'}, "0.4.10 (default)")
    one("Pipfile.lock", '{\n "default": {\n  "sgl-kernel": {\n   "hashes": [\n    "sha256:00"\n   ],\n   "version": "==0.3.21"\n  }\n }\n}\n',
        "0.3.21", 7, "sgl-kernel==0.3.21")
    one("x.egg-info/PKG-INFO", "Name: x\nVersion: 1\nRequires-Dist: sglang-kernel==0.4.5; extra == 'a'\n", "0.4.5", 3, "sglang-kernel==0.4.5")


def test_sglang_says_both():
    decides({"requirements.txt": "sglang[all]==0.5.9\n"}, "0.3.21 (requirements.txt:1: sglang==0.5.9, which pins it)",
            "sglang@0.5.9 (requirements.txt:1: sglang==0.5.9)")
    decides({"requirements.txt": "sglang>=0.5.10,<0.5.12\n"}, "0.4.2 (requirements.txt:1: sglang>=0.5.10,<0.5.12, which pins it)",
            "sglang@0.5.11 (requirements.txt:1: sglang>=0.5.10,<0.5.12, of which it is the newest)")
    decides({"requirements.txt": "sglang==0.4.1\n"}, "0.4.10 (default)", "sglang@0.4.1 (requirements.txt:1: sglang==0.4.1)")
    # A pin of the kernel itself says more than one of sglang.
    decides({"requirements.txt": "sglang==0.5.9\nsglang-kernel>=0.4,<0.4.2\n"},
            "0.4.1.post1 (requirements.txt:2: sglang-kernel>=0.4,<0.4.2, of which it is the newest)", "sglang@0.5.9 (requirements.txt:1: sglang==0.5.9)")


def test_what_is_given_wins():
    files = {"requirements.txt": "sglang==0.5.9\n"}
    equal(said(files, *ARGS), "")
    equal(said(files, "--kernel", "0.4.6"), "kernel 0.4.6, rewriting to sglang@0.5.9 (requirements.txt:1: sglang==0.5.9)")
    equal(said(files, "--to", "jit"), "kernel 0.3.21 (requirements.txt:1: sglang==0.5.9, which pins it), rewriting to jit")


def test_the_newest_exact_pin_decides():
    files = {"b/requirements.txt": "sgl-kernel==0.3.21\n", "a/requirements.txt": "sglang-kernel==0.4.5\n", "pyproject.toml": "d = ['sgl-kernel>=0.3']\n"}
    decides(files, "0.4.5 (a/requirements.txt:1: sglang-kernel==0.4.5)")


def test_pins_above_the_root():
    with Tree({"top/pyproject.toml": "d = ['sglang-kernel==0.4.5']\n", "top/src/pkg/a.py": OLD, "requirements.txt": "sgl-kernel==0.3.21\n"}) as tree:
        contains(tree.run("scan", "top/src/pkg").err, "kernel 0.4.10 (default)")  # in no work tree: who knows what it belongs to
        subprocess.run(["git", "init", "-q", "top"], cwd=tree.path, check=True)
        for path in ("top/src/pkg", "top/src/pkg/a.py", "top/src"):
            contains(tree.run("scan", path).err, "kernel 0.4.5 (top/pyproject.toml:1: sglang-kernel==0.4.5)")
    with Tree({"a.py": OLD, "requirements.txt": "sgl-kernel==0.3.21\n"}) as tree:
        contains(tree.run("scan", "a.py").err, "kernel 0.3.21 (requirements.txt:1: sgl-kernel==0.3.21)")


def test_several_roots():
    with Tree({"a/requirements.txt": "sgl-kernel==0.3.21\n", "b/requirements.txt": "sglang-kernel==0.4.5\n"}) as tree:
        contains(tree.run("scan", "a", "b").err, "kernel 0.4.5 (b/requirements.txt:1: sglang-kernel==0.4.5)")


def pins(files, *args, format="text"):
    with Tree(files) as tree:
        done = tree.run("scan", "--format", format, *args, ".")
        stream = done.out if format == "text" else done.err.replace("sgl-migrate: ", "")
        return [line.removeprefix("pin: ") for line in stream.splitlines() if line.startswith("pin: ")]


def test_contradictions():
    req = "requirements.txt"
    equal(pins({req: "sglang-kernel==0.4.5\n"}), [])
    equal(pins({req: "sglang-kernel==0.4.4\n", "a.py": OLD}), [])
    equal(pins({req: "sglang-kernel==0.4.5\n", "a.py": OLD}), ["requirements.txt:1: sglang-kernel==0.4.5 no longer has dsv3_router_gemm, used here"])
    equal(pins({req: "sglang-kernel==0.4.5\n", "a.md": "dsv3_router_gemm\n"}), [])
    equal(pins({req: "sglang==0.5.18\n", "a.py": OLD}),
          ["requirements.txt:1: sglang==0.5.18, which pins kernel 0.4.6.post1 no longer has dsv3_router_gemm, used here"])
    equal(pins({req: "sgl-kernel==0.3.21\n", "a.py": OLD}, "--kernel", "0.4.6"),
          ["requirements.txt:1: sgl-kernel==0.3.21 still has all that is used here; kernel 0.4.6, checked against, has not"])
    equal(pins({req: "sgl-kernel==0.3.21\n"}, "--kernel", "0.4.6"), [])
    moved = {req: "sglang-kernel==0.4.5\n", "a.py": "from sglang.jit_kernel.gptq_marlin_repack import gptq_marlin_repack\n"}
    equal(pins(moved, "--kernel", "0.4.6", "--to", "sglang@0.5.18"), [])  # not from the kernel
    equal(pins({req: "sgl-kernel==0.3.21\n", "Dockerfile": "RUN pip install sgl-kernel==0.3.20\n", "pyproject.toml": "d = ['sgl-kernel>=0.3.21']\n"}),
          ["Dockerfile:1: sgl-kernel==0.3.20 contradicts requirements.txt:1: sgl-kernel==0.3.21"])
    equal(pins({req: "sgl-kernel==0.3.21\nsglang==0.5.18\n"}),
          ["requirements.txt:2: sglang==0.5.18, which pins kernel 0.4.6.post1 contradicts requirements.txt:1: sgl-kernel==0.3.21"])
    equal(pins({req: "sgl-kernel==0.3.21\nsglang==0.5.9\nsglang>=0.5\n"}), [])
    many = "".join(f"sgl-kernel==0.3.{i}\n" for i in range(10))
    equal(pins({req: many})[4:], ["requirements.txt:5: sgl-kernel==0.3.4 contradicts requirements.txt:10: sgl-kernel==0.3.9",
                                  "4 more contradictions of this kind"])


def test_contradictions_beside_other_formats_are_on_standard_error():
    files = {"requirements.txt": "sglang-kernel==0.4.5\n", "a.py": OLD}
    equal(pins(files, format="sarif"), ["requirements.txt:1: sglang-kernel==0.4.5 no longer has dsv3_router_gemm, used here"])


def test_hint_to_look_ahead():
    hint = "hint: kernel 0.4.10 is the newest; --kernel 0.4.10 shows what an upgrade takes away"
    for files, args, wanted in (({"requirements.txt": "sgl-kernel==0.3.21\n", "a.py": OLD}, [], True),
                                ({"requirements.txt": "sglang==0.5.9\n"}, ["--format", "json"], True),
                                ({"requirements.txt": "sglang-kernel==0.4.5\n", "a.py": OLD}, ["--to", "jit"], False),  # there is work already
                                ({"requirements.txt": "sglang-kernel==0.4.10\n"}, [], False),
                                ({"requirements.txt": "sgl-kernel==0.3.21\n"}, ["--kernel", "0.3.21"], False),  # it was asked for
                                ({"a.py": ""}, [], False)):
        with Tree(files) as tree:
            done = tree.run("scan", *args, ".")
            equal((files, hint in done.out.splitlines(), f"sgl-migrate: {hint}" in done.err.splitlines()),
                  (files, wanted and not args, wanted and bool(args)))
    with Tree({"requirements.txt": "sglang-kernel==0.4.5\n", "a.py": OLD}) as tree:
        contains(tree.run("fix", ".").out, hint)  # all is done


def test_pins_are_no_results():
    with Tree({"requirements.txt": "sgl-kernel==0.3.21\n", "Dockerfile": "RUN pip install sglang-kernel==0.4.5\n"}) as tree:
        equal(tree.rows(), [])


def test_kernel_of_a_file():
    with Tree({"req.list": "-r more.txt\n", "more.txt": "sglang-kernel==0.4.5\n", "uv.lock": '[[package]]\nname = "sglang"\nversion = "0.5.9"\n',
               "empty.txt": "torch\n", "tree/a.py": OLD, "tree/requirements.txt": "sgl-kernel==0.3.21\n"}) as tree:
        contains(tree.run("scan", "--kernel", "req.list", "tree").err, "kernel 0.4.5 (more.txt:1: sglang-kernel==0.4.5), rewriting to jit (default)")
        contains(tree.run("scan", "--kernel", "uv.lock", "--to", "jit", "tree").err, "kernel 0.3.21 (uv.lock:3: sglang==0.5.9, which pins it), rewriting to jit\n")
        for path, says in (("/dev/null", "--kernel '/dev/null': cannot be read: no regular file, or a very large one"),
                           ("empty.txt", "--kernel 'empty.txt': it pins no release of a wheel that has sgl_kernel; give the release number"),
                           ("none.txt", "--kernel 'none.txt': not a release number like "),
                           ("tree", "--kernel 'tree': no *.dist-info folder in it owns sgl_kernel; a site-packages folder is needed")):
            done = tree.run("scan", "--kernel", path, "tree")
            equal((done.returncode, done.out, done.err.count("\n")), (8, "", 1))
            contains(done.err, says)


def installed(name, version, record="sgl_kernel/__init__.py,sha256=x,1\n"):
    info = f"site/{name}-{version}.dist-info"
    return {f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nText\nVersion: 9\n", f"{info}/RECORD": record}


def test_kernel_of_site_packages():
    files = {"tree/a.py": OLD, **installed("sglang-kernel", "0.4.5+cu130"), **installed("sgl_kernel_npu", "0.1", "sgl_kernel_npu/__init__.py,,\n"),
             **installed("torch", "2.11.0", "torch/__init__.py,,\n")}
    with Tree(files) as tree:
        done = tree.run("scan", "--kernel", "site", "tree")
        contains(done.err, "kernel 0.4.5+cu130 (site/sglang-kernel-0.4.5+cu130.dist-info: sglang-kernel==0.4.5+cu130), rewriting to jit (default)")
        equal(done.returncode, 1)
    with Tree({**files, **installed("sglang", "0.5.18", "sglang/__init__.py,,\n")}) as tree:
        contains(tree.run("scan", "--kernel", "site", "tree").err, "rewriting to sglang@0.5.18 (site/sglang-0.5.18.dist-info: sglang==0.5.18)")
    with Tree({**files, **installed("my-fork", "1.0")}) as tree:  # who owns the import decides, not the name
        done = tree.run("scan", "--kernel", "site", "tree")
        equal((done.returncode, done.err.count("\n")), (8, 1))
        contains(done.err, " own sgl_kernel there; give the release number")
        contains(done.err, "my-fork==1.0")
    with Tree({"tree/a.py": OLD, **installed("my-fork", "0.4.5")}) as tree:
        contains(tree.run("scan", "--kernel", "site", "tree").err, "kernel 0.4.5 (site/my-fork-0.4.5.dist-info: my-fork==0.4.5)")


def test_strange_files():
    """Nothing of these crashes or hangs."""
    with Tree({"requirements.txt": b"\xff\xfe\x00sgl-kernel==0.3.21\x00\nsgl-kernel==" + b"9" * 5000 + b"\nsgl-kernel[", "uv.lock": 'name = "sgl-kernel',
               "Pipfile.lock": '"sgl-kernel": {\n"version"', "setup.py": "'sgl-kernel==", "Dockerfile": "RUN pip install sgl-kernel-", "PKG-INFO": "Requires-Dist:",
               "pyproject.toml": "sgl-kernel\nsgl-kernel =\nsgl-kernel = {\nsgl-kernel = { version"}) as tree:
        equal(tree.run("scan", ".").returncode, 0)
    with Tree({"requirements.txt": "sgl-kernel==0.3.21\n", "a\x1b[31m\nb/requirements.txt": "sgl-kernel==0.3.20\n"}) as tree:
        done = tree.run("scan", ".")
        contains(done.out, "pin: a\\x1b[31m\\x0ab/requirements.txt:1: sgl-kernel==0.3.20 contradicts ")


main(globals())
