#!/usr/bin/env python3
"""The incremental cache: what a scan says never depends on it, whatever happened to the tree or to the cache file."""
import json, os, random, resource, shutil, subprocess, tempfile, time
from pathlib import Path
from tool import TOOL, Tree, contains, equal, main

CASES = Path(__file__).resolve().parent.parent / "cases"
SOURCES = sorted(p for p in CASES.rglob("input/**/*") if p.is_file() and not p.is_symlink())
FORMATS = ["text", "sarif", "json", "github", "junit", "html"]
PLAIN = {f"plain/m{i}.py": f"x = {i}\n" for i in range(220)}  # a small tree gets no cache
SETTLED = 2.2  # seconds after which the times of a file are trusted


class Cached(Tree):
    """A tree with a cache folder beside it."""

    def __init__(self, files=()):
        super().__init__({**PLAIN, **dict(files)})
        self.cache = tempfile.TemporaryDirectory(prefix="sgl-migrate-cache-")
        self.environment = {**os.environ, "XDG_CACHE_HOME": self.cache.name}

    def __exit__(self, *how):
        self.cache.cleanup()
        return super().__exit__(*how)

    def scan(self, *args, **options):
        done = self.run("scan", *(args or ["--kernel", "0.4.6", "--to", "jit"]), ".", env={**self.environment, **options})
        return done.returncode, done.stdout, done.stderr

    def check(self, *args):
        """One scan with the cache is as one without; the output."""
        args = args or ("--kernel", "0.4.6", "--to", "jit")
        have, want = self.scan(*args), self.scan("--no-cache", *args)
        equal(have, want)
        return want[1].decode(errors="replace")

    def files(self):
        return sorted(Path(self.cache.name).rglob("sgl-migrate/*"))


USE = "from sgl_kernel import dsv3_router_gemm\n"
CALL = ("#include <ATen/ATen.h>\n#include \"config.h\"\nvoid dsv3_router_gemm(at::Tensor&, const at::Tensor&, const at::Tensor&);\n"
        "void f(at::Tensor& o, at::Tensor a) { RUN(o, a, a); dsv3_router_gemm(o, a, a); }\n")


def test_formats():
    with Cached({str(p.relative_to(CASES)): p.read_bytes() for p in SOURCES[::3]}) as tree:
        options = ["--kernel", "0.4.6", "--to", "sglang@0.5.18"]
        tree.scan(*options)
        for format in FORMATS:
            tree.check("--format", format, *options)
        tree.check("-j", "1", *options)


def test_other_options():
    with Cached({"a.py": USE, "b.py": "from sgl_kernel import awq_marlin_repack\n"}) as tree:
        for options in (["--kernel", "0.4.6", "--to", "jit"], ["--kernel", "0.3.21", "--to", "jit"], ["--kernel", "0.4.6", "--to", "sglang@0.5.18"], []):
            tree.scan(*(options or ["--format", "text"]))
            tree.check(*(options or ["--format", "text"]))
        tree.put("requirements.txt", "sglang-kernel==0.4.4\n")
        contains(tree.check("--format", "json"), '"0.4.4"')
        tree.put("requirements.txt", "sglang-kernel==0.4.5\n")
        contains(tree.check("--format", "json"), '"0.4.5"')
        tree.put(".sgl-migrate.yaml", "kernel: 0.3.21\nexclude: [b.py]\n")
        contains(tree.check("--format", "json"), '"0.3.21"')
        (tree.path / ".sgl-migrate.yaml").unlink()
        tree.check("--format", "json")


def test_other_modules():
    """What Python knows across files: an alias, a star, which file a module is."""
    with Cached({"app/use.py": "from app.kernels import gone\ngone(1)\n", "app/__init__.py": "", "app/kernels.py": "# sgl_kernel\ngone = print\n"}) as tree:
        for content, found in (("from sgl_kernel import dsv3_router_gemm as gone\n", True), ("# sgl_kernel\ngone = print\n", False),
                               ("import sgl_kernel\nfrom sgl_kernel import *\n", None), ("import sgl_kernel as gone\n", None)):
            tree.check()
            tree.put("app/kernels.py", content)
            text = tree.check()
            if found is not None:
                equal("app/use.py" in text or "app/kernels.py" in text, found)
        tree.put("app/use.py", "from kernels import k\nk.dsv3_router_gemm(1)\n")
        tree.put("app/kernels.py", "import sgl_kernel as k\n")
        contains(tree.check(), "app/use.py:2")
        tree.put("app/kernels/__init__.py", "")  # another file of that name
        tree.check()
        shutil.rmtree(tree.path / "app/kernels")
        contains(tree.check(), "app/use.py:2")


def test_what_the_tree_has_itself():
    """Modules of sglang, also above the root, and source files that a build names."""
    files = {"sglang/__init__.py": "", "sglang/srt/m.py": USE, **{f"sglang/srt/p{i}.py": "" for i in range(220)},
             "sglang/srt/CMakeLists.txt": "add_library(x csrc/gemm/dsv3_fused_a_gemm.cu)\n"}
    options = ["--format", "json", "--kernel", "0.4.6", "--to", "sglang@0.5.18"]
    for folder in (".", "sglang/srt"):
        with Cached(files) as tree:
            top, tree.path = tree.path, tree.path / folder
            tree.scan(*options)
            contains(tree.check(*options), "this tree is sglang itself and has no sglang.kernels.ops.gemm.dsv3_router_gemm")
            contains(tree.check(*options), "this file was deleted")
            for path, left in (("sglang/kernels/ops/gemm/dsv3_router_gemm.py", (False, True)), ("sglang/srt/csrc/gemm/dsv3_fused_a_gemm.cu", (False, False))):
                tree.path = top
                tree.put(path, "")
                tree.path = tree.path / folder
                have = tree.check(*options)
                equal(("is sglang itself" in have, "was deleted" in have), left)


def test_other_headers():
    """What C++ knows across files: macros, and a compile database."""
    with Cached({"src/a.cc": CALL, "src/config.h": "#define RUN(o, a, b)\n"}) as tree:
        first = tree.check()
        time.sleep(SETTLED)
        tree.check()
        tree.put("src/config.h", "#define RUN dsv3_router_gemm\n")
        equal(tree.check() == first, False)
        tree.put("src/config.h", "#define RUN(o, a, b)\n#define dsv3_router_gemm other\n")
        tree.check()
        tree.put("src/config.h", "#ifdef WITH\n#define RUN(o, a, b)\n#endif\n")
        tree.check()
        tree.put("build/compile_commands.json", json.dumps([{"directory": str(tree.path), "file": "src/a.cc", "command": "c++ -DWITH -c src/a.cc"}]))
        for _ in range(2):
            tree.check()
        tree.put("build/compile_commands.json", "{")  # a note of the scan, and no configuration
        for _ in range(2):
            contains(tree.check(), "compile_commands.json")
        shutil.rmtree(tree.path / "build")
        tree.check()


def test_equal_size_and_time():
    with Cached({"a.py": USE, "b.py": "# " + "-" * (len(USE) - 3) + "\n"}) as tree:
        time.sleep(SETTLED)
        for name in ("b.py", "a.py"):
            tree.check()
            equal(name + ":1" in tree.check(), name == "a.py")
            file = tree.path / name
            old, other = file.stat(), USE if name == "b.py" else "# " + "-" * (len(USE) - 3) + "\n"
            file.write_text(other)
            os.utime(file, ns=(old.st_atime_ns, old.st_mtime_ns))
            equal((file.stat().st_size, file.stat().st_mtime_ns), (old.st_size, old.st_mtime_ns))
            equal(name + ":1" in tree.check(), name == "b.py")


def test_not_read():
    """Files with a hit that are not read, since nothing changed them, are when another option or another file asks for it."""
    files = {"app/use.py": "from app.kernels import gone\ngone(1)\n", "app/__init__.py": "", "app/kernels.py": "from sgl_kernel import dsv3_router_gemm as gone\n",
             "app/own.py": "def dsv3_router_gemm(x): pass\n", "app/lives.py": "from sgl_kernel import rmsnorm, awq_marlin_repack\n", "doc.md": "`sgl_kernel.dsv3_router_gemm`\n",
             "src/a.cc": CALL, "src/b.cc": CALL.replace("RUN(o, a, a); ", ""), "src/config.h": "#define RUN(o, a, b)\n// dsv3_router_gemm\n"}
    with Cached(files) as tree:
        time.sleep(SETTLED)
        first = tree.scan()
        for args in (), ("--format", "json"), ("--kernel", "0.3.21", "--to", "jit"), ("--kernel", "0.4.10", "--to", "sglang@0.5.23"), ():
            for _ in range(2):
                tree.check(*args)
        equal(tree.scan(), first)
        tree.put("app/kernels.py", "gone = print  # sgl_kernel\n")
        equal("app/use.py" in tree.check(), False)
        tree.put("src/config.h", "#define RUN dsv3_router_gemm\n")
        contains(tree.check(), "src/a.cc")
        tree.put("src/config.h", "#define dsv3_router_gemm other\n")
        tree.check()
        tree.put("src/c.cc", CALL)
        contains(tree.check(), "src/c.cc:4")
        (tree.path / "app/use.py").unlink()
        tree.check()


def test_changed_at_once():
    """Edits in the same tick as the scan before."""
    with Cached() as tree:
        for i in range(8):
            tree.put("a.py", USE if i % 2 else "# " + "-" * (len(USE) - 3) + "\n")
            equal("a.py:1" in tree.scan()[1].decode(), bool(i % 2))


def test_ignores_and_baseline():
    """What depends on the date, and on a file outside of the tree."""
    with Cached({"a.py": USE[:-1] + "  # sgl-migrate: ignore until=2999-01-01 reason=later\n", "b.py": USE}) as tree:
        for _ in range(2):
            tree.check()
        tree.run("scan", "--write-baseline", "accepted.json", "--kernel", "0.4.6", "--to", "jit", ".", env=tree.environment)
        for _ in range(2):
            tree.check("--baseline", "accepted.json", "--kernel", "0.4.6", "--to", "jit")
        tree.put("b.py", "\n" + USE + USE)
        for format in FORMATS:
            tree.check("--baseline", "accepted.json", "--kernel", "0.4.6", "--to", "jit", "--format", format)


def test_broken_cache_files():
    rng = random.Random(5)
    with Cached({"a.py": USE, "src/a.cc": CALL}) as tree:
        want = tree.scan("--no-cache", "--kernel", "0.4.6", "--to", "jit")
        tree.scan()
        file, = tree.files()
        good = file.read_bytes()
        bad = [b"", b"x", good[:-1], good + b"x", good[:16], bytes(len(good)), b"SGLMIGR0" + good[8:]]
        for _ in range(12):
            at = rng.randrange(len(good))
            bad.append(good[:at] + bytes([good[at] ^ 1 << rng.randrange(8)]) + good[at + 1:])
        for content in bad:
            file.write_bytes(content)
            equal(tree.scan(), want)
            equal(len(tree.files()), 1)
        # of another tree, a folder, a link, a pipe, writable by all
        with Cached({"a.py": USE + USE}) as other:
            other.scan()
            shutil.copy(other.files()[0], file)
        equal(tree.scan(), want)
        target = tree.path.parent / (file.name + ".target")
        target.write_bytes(good)
        for replace in (file.mkdir, lambda: file.symlink_to(target), lambda: os.mkfifo(file)):
            file.unlink()
            replace()
            equal(tree.scan(), want)
            equal(target.read_bytes(), good)
            file.rmdir() if file.is_dir() else None
            file.write_bytes(good)
        target.unlink()
        file.chmod(0o666)
        equal(tree.scan(), want)


def test_other_program():
    """A rebuilt program, as a new catalog is one, takes nothing from the old one."""
    with Cached({"a.py": USE}) as tree:
        tree.scan()
        file, = tree.files()
        before = file.read_bytes()
        tree.scan()
        equal(file.read_bytes(), before)
        program = tree.path.parent / f"{tree.path.name}-program"
        shutil.copy(TOOL, program)
        subprocess.run([program, "scan", "--kernel", "0.4.6", "--to", "jit", "."], cwd=tree.path, env=tree.environment, capture_output=True)
        program.unlink()
        equal(file.read_bytes() == before, False)
        tree.check()
        own = tree.path / "own.yaml"
        shutil.copy(CASES.parents[1] / "catalog/removals.yaml", own)
        before = file.read_bytes()
        tree.scan("--catalog", "own.yaml", "--kernel", "0.4.6")
        equal(file.read_bytes(), before)  # somebody's own catalog may change from scan to scan


def test_no_place():
    with Cached({"a.py": USE}) as tree:
        want = tree.scan("--no-cache", "--kernel", "0.4.6", "--to", "jit")
        plain = tree.path / "a.py"
        for folder in ("", "relative", "/nowhere/at/all", "/proc/1", "/dev/null", str(plain)):
            for _ in range(2):
                equal(tree.scan(XDG_CACHE_HOME=folder, HOME=folder), want)
        equal(tree.files(), [])
        equal((tree.path / "relative").exists(), False)
        environment = {k: v for k, v in tree.environment.items() if k not in ("HOME", "XDG_CACHE_HOME")}
        done = tree.run("scan", "--kernel", "0.4.6", "--to", "jit", ".", env=environment)
        equal((done.returncode, done.stdout, done.stderr), want)
        home = Path(tree.cache.name)
        equal(tree.scan(XDG_CACHE_HOME="", HOME=str(home)), want)
        equal([p.relative_to(home).parts[:2] for p in tree.files()], [(".cache", "sgl-migrate")])
        equal([p.stat().st_mode & 0o77 for p in [home / ".cache/sgl-migrate", *tree.files()]], [0, 0])


def test_at_the_same_time():
    with Cached({"a.py": USE, "src/a.cc": CALL}) as tree:
        want = tree.scan("--no-cache", "--kernel", "0.4.6", "--to", "jit")
        for round in range(2):
            command = [TOOL, "scan", "--kernel", "0.4.6", "--to", "jit", "."]
            runs = [subprocess.Popen(command, cwd=tree.path, env=tree.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(6)]
            for run in runs:
                out, err = run.communicate()
                equal((run.returncode, out, err), want)
            equal(len(tree.files()), 1)
            tree.put("a.py", USE + f"# {round}\n")
            want = tree.scan("--no-cache", "--kernel", "0.4.6", "--to", "jit")


def test_cost():
    """Processor time of the second scan, after one edit; the benchmark has the ratio on real code."""
    lines = "".join(f"def f{i}(a, b=({i}, 'x')):\n    return sgl_kernel.dsv3_router_gemm(a, [b for b in a if b])\n" for i in range(150))
    with Cached({f"big/m{i}.py": "import sgl_kernel\n" + lines for i in range(60)}) as tree:
        def seconds(*args):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            tree.scan("--kernel", "0.4.6", "--to", "jit", "--format", "junit", *args)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        whole = min(seconds("--no-cache") for _ in range(3))
        seconds()
        again = []
        for i in range(3):
            tree.put("big/m7.py", "import sgl_kernel\n" + lines + f"# {i}\n")
            again.append(seconds())
        if min(again) > 0.5 * whole:
            raise AssertionError(f"{min(again):.3f} s after an edit, {whole:.3f} s without a cache")


# --- random edits -----------------------------------------------------------------------------------------------------

PIECES = [b"import sgl_kernel\n", b"import sgl_kernel as k\n", b"from sgl_kernel import *\n", b"from .a import k\n", b"#define X(a) a\n",
          b"#define dsv3_router_gemm y\n", b'#include "a.h"\n', b"dsv3_router_gemm", b"# sgl-migrate: ignore\n", b"\n", b"'", b"(", b"\xff", b"sgl_kernel"]


def edit(rng, tree, files, clock):
    name, kind = rng.choice(files), rng.random()
    file = tree.path / name
    there = file.is_file()
    if kind < 0.1 and there:
        file.unlink()
    elif kind < 0.2 and there:
        file.rename(tree.path / rng.choice(files))
    elif kind < 0.3 or not there:
        tree.put(name, rng.choice(SOURCES).read_bytes())
    elif kind < 0.35:
        tree.put(rng.choice(["requirements.txt", ".sgl-migrate.yaml"]),
                 rng.choice(["sglang-kernel==0.4.5\n", "sglang-kernel==0.4.4\n", "kernel: 0.4.6\n", "exclude: ['*.cc']\n"]))
    elif kind < 0.5:
        old, content = file.stat(), bytearray(file.read_bytes())
        for i in range(len(content)):  # as long as before, as old as before
            if content[i:i + 4] == b"sgl_":
                content[i:i + 4] = b"sgl-"
        file.write_bytes(content)
        os.utime(file, ns=(old.st_atime_ns, old.st_mtime_ns))
    else:
        content = file.read_bytes()
        at = rng.randrange(len(content) + 1)
        file.write_bytes(content[:at] + rng.choice(PIECES) + content[at:])


def random_edits(seed):
    rng = random.Random(seed)
    with Cached({f"{i % 7}/{p.name}": p.read_bytes() for i, p in enumerate(rng.sample(SOURCES, 60))}) as tree:
        files = sorted(str(p.relative_to(tree.path)) for p in tree.path.rglob("[!m]*") if p.is_file())
        time.sleep(SETTLED)
        for round in range(int(os.environ.get("CACHE_ROUNDS", "8"))):
            options = rng.choice([["--format", "json"], ["--format", "sarif", "--kernel", "0.4.6"]])
            tree.scan(*options)
            for _ in range(rng.randint(1, 3)):
                edit(rng, tree, files, round)
            try:
                tree.check(*options)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, round {round}: {str(error)[:2000]}") from None


def test_random_edits():
    for seed in range(int(os.environ.get("CACHE_SEEDS", "2"))):
        random_edits(seed)


main(globals())
