#!/usr/bin/env python3
"""The cache and C++: after random edits of a tree whose files depend on each other in all ways that the front knows, a scan
with the cache says, byte for byte, what one without it says. CACHE_SEEDS and CACHE_ROUNDS make it longer."""
import json, os, random, tempfile, time
from pathlib import Path
from tool import Tree, equal, main

CASES = Path(__file__).resolve().parent.parent / "cases/cpp"
NAMES = ["dsv3_router_gemm", "dsv3_fused_a_gemm", "awq_dequantize", "bmm_fp8", "causal_conv1d_fwd"]
FOLDERS = ["", "a/", "a/sub/", "b/"]
TELLING = [f"{folder}h{i}.h" for folder in FOLDERS for i in range(3)] + ["one.cc", "b/two.cu"]
ASKING = [f"{FOLDERS[i % 4]}s{i}.{['cc', 'cu', 'cc', 'c', 'cuh'][i % 5]}" for i in range(12)]
PARAMETERS = "at::Tensor& o, const at::Tensor& a, const at::Tensor& b"
# What a line may be: {h} a header's name, {n} a catalog name, {i}, {j} and {m} small numbers.
LINES = ['#include "{h}"', '#include "{h}"', "#include <{h}>", '#include "../{h}"', '#include "sub/{h}"', "#include <ATen/ATen.h>", '#include "sgl_kernel_ops.h"',
         '#include "sgl_kernel_jit/torch.h"', "#pragma once", "void {n}(%s);" % PARAMETERS, "void {n}(%s);" % PARAMETERS, "int {n}(int, int, int);",
         "namespace n{i} { void {n}(%s); }" % PARAMETERS, "namespace n{i} {", "}", "using namespace n{i};", "using n{i}::{n};", 'extern "C" {',
         "void f{i}(%s) { {n}(o, a, b); }" % PARAMETERS, "void f{i}(%s) { {n}(o, a, b); }" % PARAMETERS, "void g{i}(%s) { ::{n}(o, a, b); n{j}::{n}(o, a, b); }" % PARAMETERS,
         "void k{i}(%s) { M{m}({n}(o, a, b)); }" % PARAMETERS, "void l{i}(%s) { M{m}(dsv3_, router_gemm)(o, a, b); }" % PARAMETERS, "template <class T> void t{i}(T x) { {n}(x, x, x); }",
         "auto* p{i} = &{n};", "#define M{m}(x) x", "#define M{m}(a, b) a##b", "#define M{m}(a, b) M{i}(a, b)", "#undef M{m}", "%:define M{m}(x) x",
         "#define \\\n M{m}(x, y) x##y", "#define {n} other{i}", "#define {n}(a, b, c) g{i}(a, b, c)", "#define OPEN namespace n{i} {", "OPEN", "#define CLOSE }", "CLOSE",
         "void {n}(%s) { }" % PARAMETERS, "namespace n{i} { struct T { }; void {n}(T, T, T); }", "void {n}(struct S{i}*, int, int) { }",
         "TORCH_LIBRARY_FRAGMENT(sgl_kernel, m) { reg{m}(m); }", "TORCH_LIBRARY(other, m) { reg{m}(m); }", 'void reg{m}(torch::Library& m) { m.impl("{n}", f{j}); }',
         'const char* s{i} = "{n}";', "// {n}", "/*", "*/", "#if 0", "#ifdef M{m}", "#ifdef WITH", '#if __has_include("{h}")', "#else", "#endif", "struct sgl_kernel_jit { };",
         "namespace sgl_kernel_jit = n{i};", 'R"(', ')"', "// sgl-migrate: ignore[{n}]", "static int x{i};"]


class Cached(Tree):
    def __init__(self, files):
        super().__init__({**{f"plain/m{i}.txt": "" for i in range(200)}, **files})  # a small tree gets no cache
        self.cache = tempfile.TemporaryDirectory(prefix="sgl-migrate-cache-")
        self.environment = {**os.environ, "XDG_CACHE_HOME": self.cache.name}

    def __exit__(self, *how):
        self.cache.cleanup()
        return super().__exit__(*how)

    def scan(self, *args):
        done = self.run("scan", "--kernel", "0.4.6", "--to", "jit", "--format", "json", *args, ".", env=self.environment)
        return done.returncode, done.out, done.err

    def check(self, threads):
        equal(self.scan("-j", threads), self.scan("-j", "2", "--no-cache"))


def line(rng):
    text = rng.choice(LINES)
    for mark, value in (("{h}", f"h{rng.randrange(3)}.h"), ("{n}", rng.choice(NAMES)), ("{i}", rng.randrange(3)), ("{j}", rng.randrange(3)), ("{m}", rng.randrange(8))):
        text = text.replace(mark, str(value))
    return text + "\n"


def some_lines(rng):
    return [line(rng) for _ in range(rng.randrange(2, 9))]


def asking(rng):
    """A source that depends on what others say."""
    name, m = rng.choice(NAMES), rng.randrange(4)
    headers = [f'#include "h{i}.h"\n' for i in range(3) if rng.random() < 0.4]
    calls = [f"{name}(o, a, b);", f"M{m}({name}(o, a, b));", f"n1::{name}(o, a, b);", f"{name}(o, a, b); ::{name}(o, a, b);", f"M{m}(dsv3_, router_gemm)(o, a, b);"]
    uses = [f"void f{m}({PARAMETERS}) {{ {rng.choice(calls)} }}\n", f"template <class T> void t(T x) {{ {name}(x, x, x); }}\n",
            f'void reg{m}(torch::Library& m) {{ m.impl("{name}", f); }}\n']
    return headers + [f"void {name}({PARAMETERS});\n"] * (rng.random() < 0.4) + rng.choices(uses, k=2)


def telling(rng):
    """A file that others depend on, for one thing."""
    name, m = rng.choice(NAMES), rng.randrange(4)
    return [rng.choice([f"void {name}({PARAMETERS});\n", f"int {name}(int, int, int);\n", f"namespace n1 {{ void {name}({PARAMETERS}); }}\n", f"#define M{m}(x) x\n",
                        f"#define M{m}(a, b) a##b\n", f"#define {name} other\n", f"TORCH_LIBRARY(sgl_kernel, m) {{ reg{m}(m); }}\n", f"void {name}({PARAMETERS}) {{}}\n",
                        f"struct S {{ friend void {name}(S&, S&, S&) {{}} }};\n", f'#include "h{m % 3}.h"\n', "#pragma once\n", ""])]


def edit(rng, tree, paths):
    path, kind = rng.choice(paths), rng.random()
    if path in ASKING and rng.random() < 0.7:
        path = rng.choice(TELLING)
    file = tree.path / path
    if kind < 0.09:
        flags = ["-DWITH", "-DM1=M2", "-Ia", "-Ib", "-include " + rng.choice(TELLING), "-x c++"]
        commands = [{"directory": str(tree.path), "file": file, "command": f"c++ {' '.join(rng.sample(flags, 2))} -c {file}"} for file in rng.sample(paths, 5)]
        tree.put("build/compile_commands.json", json.dumps(commands) if rng.random() < 0.9 else "{")
    elif kind < 0.12:
        (tree.path / "build/compile_commands.json").unlink(missing_ok=True)
    elif kind < 0.20 and file.is_file():
        file.unlink()
    elif kind < 0.24 and file.is_file():
        file.rename(tree.path / rng.choice(paths))
    elif kind < 0.26:
        tree.put(path, rng.choice([b"", b"\0\1", b"\xff\xfed\0s\0v\0", NAMES[0].encode()]))
    elif kind < 0.29:
        tree.put(path, file.read_bytes() if file.is_file() else b"")  # another time, the same content
    elif kind < 0.65 or not file.is_file():
        tree.put(path, "".join(some_lines(rng) if rng.random() < 0.1 else telling(rng) if path in TELLING else asking(rng)))
    else:
        lines = file.read_bytes().splitlines(keepends=True)
        at = rng.randrange(len(lines) + 1)
        lines[at:at + (rng.random() < 0.4)] = [line(rng).encode()] * (rng.random() < 0.8)
        file.write_bytes(b"".join(lines))


def random_edits(seed, files, rounds):
    rng = random.Random(seed)
    with Cached(files(rng)) as tree:
        (tree.path / "build").mkdir(exist_ok=True)
        paths = sorted(str(p.relative_to(tree.path)) for p in tree.path.rglob("*") if p.is_file() and "plain" not in p.parts)
        time.sleep(2.2)  # then what nobody edits is not read again
        tree.scan("-j", "2")
        for round in range(rounds):
            for _ in range(rng.choice([1, 1, 1, 1, 1, 1, 2, 5])):
                edit(rng, tree, paths)
            try:
                tree.check(rng.choice("18"))
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, round {round}: {str(error)[:3000]}") from None


def generated(rng):
    return {path: "".join(asking(rng) if path in ASKING else telling(rng)) for path in ASKING + TELLING}


def from_cases(rng):
    """The inputs of some case folders, which have each kind of dependence once."""
    files = {}
    for case in rng.sample(sorted(CASES.iterdir()), 12):
        for path in (case / "input").rglob("*"):
            if path.is_file() and not path.is_symlink():
                files[f"{case.name}/{path.relative_to(case / 'input')}"] = path.read_bytes()
    return files


SEEDS, ROUNDS = int(os.environ.get("CACHE_SEEDS", "1")), int(os.environ.get("CACHE_ROUNDS", "40"))


def test_generated_tree():
    for seed in range(SEEDS):
        random_edits(seed, generated, ROUNDS)


def test_cases():
    for seed in range(SEEDS):
        random_edits(seed, from_cases, ROUNDS // 2)


main(globals())
