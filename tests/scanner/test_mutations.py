#!/usr/bin/env python3
"""Damaged copies of the case inputs: the scanner must survive them, fix must settle after one run, and what is no rewrite
must stay byte for byte. The seed is fixed; MUTATION_SEED and MUTATION_ROUNDS change it and the number of trees."""
import os, random
from pathlib import Path
from tool import Tree, equal, main

CASES = Path(__file__).resolve().parent.parent / "cases"
SEED = int(os.environ.get("MUTATION_SEED", "1"))
ROUNDS = int(os.environ.get("MUTATION_ROUNDS", "12"))
PIECES = [b"sgl_kernel", b"sgl_kernel.", b"from sgl_kernel import ", b"import sgl_kernel as k\n", b"dsv3_router_gemm", b'"', b"'",
          b'"""', b"\n", b"\r\n", b"#", b"<<EOF\n", b"|\n", b"\\", b"\\\n", b"/", b"gemm/", b"dsv3_fused_a_gemm.cu", b"+",
          b"@@ -1,3 +1,9 @@\n", b"+++ b/x.py\n", b"\xff", b"\x00", b"/*", b"*/", b"(", b")", b"{", b"}", b"::", b",", b" as ",
          b'R"x(', b"#if 0\n", b"#endif\n", b"#define X ", b"try:\n    ", b"\t", b"\xef\xbb\xbf", b"<<<<<<< a\n"]


def damage(rng, content):
    content = bytearray(content)
    for _ in range(rng.randint(1, 10)):
        at, kind = rng.randrange(len(content) + 1), rng.random()
        if kind < 0.5:
            content[at:at] = rng.choice(PIECES)
        elif kind < 0.75:
            del content[at:at + rng.randint(1, 30)]
        elif kind < 0.92:
            start = rng.randrange(len(content) + 1)
            content[at:at] = content[start:start + rng.randint(1, 60)]
        else:
            del content[at:]
    return bytes(content)


def make(round_number):
    def test():
        rng = random.Random(SEED * 1000 + round_number)
        sources = sorted(p for p in CASES.rglob("input/**/*") if p.is_file())
        files = {f"{i}/{p.name}": damage(rng, p.read_bytes()) for i, p in enumerate(rng.choices(sources, k=50))}
        args = ["--kernel", "0.4.6", "--to", rng.choice(["jit", "sglang@0.5.18", "sglang@0.5.15"])]
        with Tree(files) as tree:
            try:
                rewritten = set()
                lines = tree.run("scan", *args, ".").out.splitlines()
                rewritten = {line.split(":")[0] for line in lines if ": rewrite " in line}
                first = tree.run("fix", *args, ".")
                equal((first.returncode & 16, "not fixed" in first.err), (0, False))
                after = {path: (tree.path / path).read_bytes() for path in files}
                equal([path for path in files if after[path] != files[path] and path not in rewritten], [])
                equal([path for path in rewritten if after[path] == files[path]], [])
                again = tree.run("fix", *args, ".")
                equal([path for path in files if (tree.path / path).read_bytes() != after[path]], [])
                equal(again.returncode, first.returncode)
            except AssertionError as error:
                kept = Path(os.environ.get("TMPDIR", "/tmp")) / f"sgl-migrate-mutation-{SEED}-{round_number}"
                for path, content in files.items():
                    (kept / path).parent.mkdir(parents=True, exist_ok=True)
                    (kept / path).write_bytes(content)
                raise AssertionError(f"{' '.join(args)} {kept}: {error}") from None
    return test


main({f"test_round_{n}": make(n) for n in range(ROUNDS)})
