#!/usr/bin/env python3
"""Runs the libFuzzer targets on seeds from the case folders.

usage: run.py BUILD_DIR SECONDS [NAME...]

Each target of BUILD_DIR/fuzz/tests/fuzz runs for so many seconds, two at a time; what it finds new is kept in
BUILD_DIR/fuzz/corpus for the next time. An input that crashes, leaks, takes longer than 10 s or 2 GiB stays in
BUILD_DIR/fuzz/found, and the exit status is 1."""
import bz2, concurrent.futures, gzip, io, json, lzma, os, pathlib, re, shutil, subprocess, sys, tarfile, zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "scanner"))
import elf_files
CASES = ROOT / "tests" / "cases"
LONGEST = 8192
# The same lists as in fuzz_text.c and fuzz_pins.c.
TEXTS = ["CMakeLists.txt", "Makefile", "BUILD.bazel", "meson.build", "setup.py", "a.md", "a.rst", "a.sh", "Dockerfile",
         ".github/a.yml", "a.patch", "a.toml", "a.go", "notes"]
PINS = {"requirements.txt": "-r other.txt\nsglang-kernel==0.4.5  # why\nsgl-kernel>=0.3.1,<0.4; python_version < '3.13' \\\n  --hash=sha256:00\n"
                            "sglang[all] @ git+https://example.org/x@v0.5.14\n",
        "pyproject.toml": '[project]\ndependencies = ["sglang-kernel==0.4.5",\n  "sglang>=0.5.14"]\n[tool.poetry.dependencies]\nsgl-kernel = { version = "^0.4" }\n',
        "setup.py": "from setuptools import setup\nsetup(install_requires=['sgl_kernel == 0.4.4', 'sglang~=0.5.1'])\n",
        "setup.cfg": "[options]\ninstall_requires =\n    sglang-kernel==0.4.5\n    sglang\n",
        "env.yml": "dependencies:\n  - python=3.11\n  - pip:\n    - sglang-kernel==0.4.5\n  - sglang=0.5.14\n",
        "uv.lock": '[[package]]\nname = "sglang-kernel"\nversion = "0.4.5"\n',
        "Pipfile.lock": '{"default": {"sglang-kernel": {"version": "==0.4.5"}}}',
        "Dockerfile": "ARG V=0.4.5\nRUN pip install \\\n  sglang-kernel==${V} 'sglang==0.5.14'\n",
        "PKG-INFO": "Metadata-Version: 2.1\nName: x\nRequires-Dist: sglang-kernel (==0.4.5)\n"}
SETTINGS = ["kernel: 0.4.6\nto: sglang@0.5.18\n", "to: jit\nbaseline: a/b\nexclude: [third_party, '*.gen.py', src/**/x]\ninclude:\n  - build/gen\n", "# none\n"]
DATABASES = [[{"directory": "/w", "file": "a.cu", "command": "cd sub && nvcc \"-DA=\\\"x\\\"\" -DENABLE_ROUTER -Iinc -include b.h -c ../a.cu"}],
             [{"directory": "/w/build", "file": "/w/src/c.cc", "arguments": ["c++", "-UX", "-D", "Y=1", "-isystem", "..", "@flags.rsp", "../src/c.cc"]}]]
RECORDS = ["sgl_kernel/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\r\nsgl_kernel-0.4.5.dist-info/RECORD,,\n",
           '"a ""b"",c.py",sha256=x,9\n../../../bin/x,,12\n/etc/passwd,sha256=,-1\n']
MESSAGES = ["ImportError: cannot import name 'dsv3_router_gemm' from 'sgl_kernel' (unknown location)", "\x1b[31mlibnvrtc.so.12\x1b[0m: cannot open\r\nshared object file",
            "\x1b]8;;x\x1b\\undefined symbol: _ZN3c104cuda1fEi\\n^[[1m", "No module named 'sgl_kernel.memory'", "'_OpNamespace' 'sgl_kernel' object has no attribute 'bmm_fp8'"]
POLICIES = ["dsv3_router_gemm = warn # why\n* = error; deny bmm_fp8\ndefault = 0.4.4\n", "extend bmm_fp8 until 2027-02-28 reason #12, soon; ramp * 12.5% to error\n",
            "serve bmm_fp8=reference\r\nshadow dsv3_router_gemm first=3 every=1000 budget=20 tolerance=1e-3 return=other\n", "\ufeffdsv3_router_gem = wran\n"]
USAGE = ['{"schema":"sgl-kernel-compat-usage/1","version":"0.1.0","package":"sgl_kernel","host":"a","pid":7,"start":1790000000000,"written":1790000009,"lines":6,'
         '"job":"SLURM_JOB_ID=12","rank":"0","program":"/usr/bin/python"}\n'
         '{"symbol":"dsv3_router_gemm","face":"python","calls":{"silent":1,"warn":2},"failed":1,"first":1790000001,"removed_in":"0.4.5","caller":{"module":"m","file":"/m.py","line":3}}\n'
         '{"symbol":"dsv3_router_gemm","face":"operator","calls":{},"samples":4,"first":1790000001,"removed_in":"0.4.5"}\n'
         '{"symbol":"bmm_fp8","face":"cxx","calls":{"error":1},"first":1790000001,"removed_in":"0.4.6","caller":{"file":"/a.so","offset":"0x12","function":"f","function_offset":"0x1"}}\n'
         '{"kernel":"dsv3_router_gemm:256x7168:float32","calls":3}\n'
         '{"shadow":"dsv3_router_gemm","calls":3,"matches":1,"mismatches":1,"ignored":0,"over_budget":1,"errors":0}\n'
         '{"not_counted":"awq_dequantize","faces":["operator","python"]}\n', '{"schema":"sgl-kernel-compat-usage/2"}\n', '{}\n\n[]\n']
IGNORES = ["# sgl-migrate: ignore\n", "f()  # sgl-migrate: ignore[dsv3_router_gemm, bmm_fp8] until=2027-03-01 reason=later on\n",
           "# sgl-migrate: ignore[] until=never\nx = (1,\n  2)\n", "# sgl-migrate:ignore reason=\"a b\"\n"]


def tool(build, *args):
    done = subprocess.run([build / "bin" / "sgl-migrate", *args], cwd=CASES, capture_output=True)
    return done.stdout


def archives():
    """The first byte is for fuzz_archive.c; an image is a tar file of tar files."""
    elf, object_file = elf_files.Elf().bytes, elf_files.compiled(elf_files.USER, name="x.o")
    def tar(members):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for name, data in members.items():
                one = tarfile.TarInfo(name)
                link = isinstance(data, str)
                one.size, one.type, one.linkname = 0 if link else len(data), tarfile.LNKTYPE if link else tarfile.REGTYPE, data if link else ""
                archive.addfile(one, None if link else io.BytesIO(data))
        return out.getvalue()[:LONGEST - 1]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("p/_C.so", elf)
    member = f"{'x.o/':<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(object_file):<10}`\n".encode() + object_file
    image = tar({"manifest.json": b'[{"Layers":["blobs/sha256/1"]}]', "blobs/sha256/1": tar({"a/.wh.x": b"", "a.so": elf})[:3072]})
    links = tar({"manifest.json": b'[{"Layers":["blobs/1","blobs/2"]}]', "blobs/1": tar({"a.so": elf, "b.so": "a.so", "c.so": "b.so"})[:3584], "blobs/2": tar({".wh.a.so": b"", "./d/../e.so": "b.so"})[:2048]})
    crane = tar({"sha256:" + "c" * 64: b"{}", "1" * 64 + ".tar.gz": gzip.compress(tar({"a.so": elf})[:3072]), "manifest.json": b'[{"Layers":["%s.tar.gz"]}]' % (b"1" * 64)})
    return [b"\0" + packed.getvalue(), b"\0#!/bin/sh\n" + packed.getvalue(), b"\0" + tar({"a.so": elf, "w.whl": packed.getvalue(), "x.pyz": b"#!\n" + packed.getvalue()}),
            *(b"\0" + pack(tar({"a.so": elf})) for pack in (gzip.compress, bz2.compress, lzma.compress)), b"\0" + gzip.compress(elf) + gzip.compress(elf), b"\0" + image, b"\0" + crane, b"\0" + links,
            b"\0" + tar({"a.so": elf, "b.so": "a.so"}),
            b"\1!<arch>\n" + member]


def shadows():
    """Files of mismatches: the smallest of a GEMM, one of bmm_fp8, and one with too little."""
    def file(symbol, tensors, data):
        lines = ["sgl-kernel-compat shadow 1", f"symbol {symbol}", "other reference", "error 0.5", "tolerance 1e-06", *(f"tensor {t}" for t in tensors), "end", ""]
        return "\n".join(lines).encode() + data
    gemm = ["output float32 1,8 8,1 32", "mat_a bfloat16 1,256 256,1 512", "mat_b bfloat16 8,256 256,1 4096", "other float32 1,8 8,1 32"]
    bmm = ["A float8_e4m3fn 1,1,16 16,16,1 16", "B float8_e4m3fn 1,16,8 128,1,16 128", "D bfloat16 1,1,8 8,8,1 16", "A_scale float32 1 1 4",
           "B_scale float32 - - 4", "other bfloat16 1,1,8 8,8,1 16"]
    quant = ["input bfloat16 2,8 8,1 32", "output_q float8_e4m3fn 2,8 8,1 16", "output_s float32 1 1 4", "other float8_e4m3fn 2,8 8,1 16"]
    return [file("sgl_per_tensor_quant_fp8", quant, bytes(32 + 16 + 4 + 16)), file("dsv3_router_gemm", gemm, bytes(32 + 512 + 4096 + 32)), file("bmm_fp8", bmm, bytes(16 + 128 + 16 + 4 + 4 + 16)), file("dsv3_fused_a_gemm", gemm[:2], b"")]


def seeds(build):
    """{target: [bytes]}"""
    files = [p for p in sorted(CASES.rglob("input/**/*")) if p.is_file() and p.stat().st_size <= LONGEST]
    of = lambda *endings: [p.read_bytes() for p in files if p.suffix in endings]
    texts = []
    for path in files:
        kind = [i for i, name in enumerate(TEXTS) if path.name == name or (name.startswith("a.") and path.suffix == name[1:])]
        texts += [bytes([kind[0]]) + path.read_bytes()] if kind else []
    accepted = build / "fuzz" / "accepted"
    tool(build, "scan", "--write-baseline", accepted, "--kernel", "0.4.6", "--to", "jit", "text")
    # A catalog is long; libFuzzer gets its parts as well.
    catalog = (ROOT / "catalog" / "removals.yaml").read_text()
    rows, changes = catalog.split("\nchanges:\n", 1)
    head, *symbols = re.split(r"(?m)^(?=  - id:)", rows)
    change = re.split(r"(?m)^(?=  - id:)", changes)[1]
    scans = [tool(build, "scan", "--format", "sarif", "--kernel", "0.4.6", "--to", "jit", *more, folder)
             for folder in ("text/t01-markdown", "build/b04-makefile") for more in ([], ["--shard", "1/2"])]
    return {
        "elf": [elf_files.Elf().bytes, elf_files.Elf(big=True, machine=22, needed=("libx.so.1",)).bytes, elf_files.compiled(elf_files.USER, name="x.o")],
        "archive": archives(),
        "python": of(".py", ".pyi"), "notebook": of(".ipynb"), "cxx": of(".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".mu"),
        "text": texts, "catalog": [(head + symbols[i]).encode() for i in (0, 5, -1)] + [(head + symbols[0] + "\nchanges:\n" + change).encode()], "settings": [s.encode() for s in SETTINGS],
        "compile_database": [json.dumps(d).encode() for d in DATABASES], "baseline": [accepted.read_bytes()],
        "merge": scans, "gate": scans, "statistics": [s.encode() for s in USAGE], "shadow": shadows(),
        "pins": [bytes([i]) + text.encode() for i, text in enumerate(PINS.values())], "ignore": [s.encode() for s in IGNORES],
        "explain": [s.encode() for s in MESSAGES], "record": [s.encode() for s in RECORDS], "policy": [s.encode() for s in POLICIES]}


def words(build):
    """A dictionary: what the parsers look for."""
    text = (ROOT / "catalog" / "removals.yaml").read_text()
    found = sorted(set(re.findall(r"^  - id: (\w+)$", text, re.M)))[:30]
    more = ["sgl_kernel", "torch.ops.sgl_kernel.", "from sgl_kernel import ", "import ", "TORCH_LIBRARY(", "#include ", "#define ", "#if ",
            "#endif", "try:", "except ImportError:", "getattr(", "mock.patch(", "sgl-migrate: ignore", "sglang-kernel==", "\\\\\\x0a", " until ", " reason ", "% to ", "tombstone", "reference",
            "return=other", "tolerance=", '"symbol":', '"calls":', '"not_counted":', "float8_e4m3fn", "bfloat16", "mat_a"]
    path = build / "fuzz" / "words"
    path.write_text("".join('"%s"\n' % word.replace('"', '\\"') for word in found + more))
    return path


def run(build, name, seconds, dictionary):
    folder = build / "fuzz"
    corpus, found = folder / "corpus" / name, folder / "found"
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(exist_ok=True)
    before = set(found.iterdir())
    command = [folder / "tests" / "fuzz" / f"fuzz_{name}", f"-max_total_time={seconds}", f"-max_len={LONGEST}", "-timeout=10", "-rss_limit_mb=2048",
               "-print_final_stats=1", f"-dict={dictionary}", f"-artifact_prefix={found}/{name}-", corpus, folder / "seeds" / name]
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, timeout=seconds * 4 + 600,
                          env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1"})
    output = done.stdout.decode(errors="replace")
    runs, speed, cover = ((re.findall(pattern, output) or ["?"])[-1] for pattern in (r"executed_units: (\d+)", r"exec_per_sec: +(\d+)", r"cov: (\d+)"))
    line = f"{name:17} {runs:>9} runs, {speed:>6}/s, cover {cover:>5}, corpus {len(list(corpus.iterdir())):>5}"
    if done.returncode:
        new = sorted(set(found.iterdir()) - before)
        line += f"\n{name}: FAILED, status {done.returncode}: {' '.join(map(str, new))}\n" + "\n".join("    " + l for l in output.splitlines()[-60:])
    return done.returncode == 0, line


def main():
    build, seconds = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])
    all_seeds = seeds(build)
    names = sys.argv[3:] or sorted(all_seeds)
    assert sorted(all_seeds) == sorted(p.stem[5:] for p in pathlib.Path(__file__).parent.glob("fuzz_*.c"))
    for name in names:
        folder = build / "fuzz" / "seeds" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for i, seed in enumerate(all_seeds[name]):
            (folder / str(i)).write_bytes(seed)
    dictionary, good = words(build), True
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for fine, line in pool.map(lambda name: run(build, name, seconds, dictionary), names):
            print(line, flush=True)
            good = good and fine
    print(f"{len(names)} targets, {seconds} s each: {'nothing found' if good else 'FAILED'}")
    sys.exit(0 if good else 1)


main()
