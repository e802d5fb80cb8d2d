#!/usr/bin/env python3
"""Whole scans of a checkout of real projects, against ripgrep with the same names and ast-grep with one Python pattern.

usage: bench_scan.py BUILD_DIR [ROUNDS]

The checkout is made once, in BUILD_DIR/bench-scan/tree: four git repositories from PyPI's source packages (pinned in
requirements-scan-sources.txt), cut to whole folders, without files above 256 KiB (tables and assembled kernels), to 6,600
files of more than 100 MB. The programs run in turn, with a warm page cache and the output in a file; the medians of the time that passes
count, and processor time is printed beside it. Exit status 1 when a must of docs/performance.md is missed."""
import json, os, pathlib, re, shutil, statistics, subprocess, sys, tarfile, time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests"))
import pypi
FILES = 6600
LARGEST = 256 << 10
# What is taken of each package; the last one fills up.
PARTS = {
    "sglang": [""],
    "vllm": ["CMakeLists.txt", "setup.py", "pyproject.toml", "cmake", "csrc", "requirements", "tests/kernels", "vllm/distributed",
             "vllm/model_executor", "vllm/v1"],
    "flashinfer_python": ["csrc/nv_internal", "flashinfer/comm", "flashinfer/gemm", "flashinfer/fused_moe", "flashinfer/jit", "include"],
    "transformers": ["setup.py", "src/transformers"],
}
CHOICE = ["--kernel", "0.4.10", "--to", "jit"]  # no pin decides: all names are gone
PATTERN = "from sgl_kernel import $$$NAMES"  # of ast-grep


def must_run(*command, **options):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        sys.exit(f"bench_scan: {' '.join(map(str, command))}: {(done.stdout.strip().splitlines() or ['no output'])[-1]}")


def download(folder):
    pypi.download_sources(HERE / "requirements-scan-sources.txt", folder)
    pypi.pip("install", "--no-deps", "--require-hashes", "--upgrade", "-r", HERE / "requirements-scan-tools.txt", "--target", folder / "tools")


def wanted(path, parts):
    return any(not part or path == part or path.startswith(part + "/") for part in parts)


def make_tree(folder):
    """The same files with the same bytes each time."""
    tree, left = folder / "tree.new", FILES
    shutil.rmtree(tree, ignore_errors=True)
    for package, parts in PARTS.items():
        archive, = folder.glob(f"{package}-*.tar.gz")
        with tarfile.open(archive) as source:
            members = sorted((m for m in source if m.isfile() and m.size <= LARGEST), key=lambda m: m.name)
            members = [m for m in members if wanted(m.name.partition("/")[2], parts)][:left]
            for member in members:
                target = tree / package / member.name.partition("/")[2]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.extractfile(member).read())
        left -= len(members)
        git = ["git", "-C", tree / package, "-c", "user.name=bench", "-c", "user.email=bench"]
        must_run(*git, "init", "-q")
        must_run(*git, "add", "-A")
        must_run(*git, "commit", "-q", "-m", "bench")
    tree.rename(folder / "tree")


def names():
    """What the scanner's prefilter looks for: the catalog's symbols, and their Python, operator, C++ and template names and the
    package; the symbols alone."""
    text = (ROOT / "catalog" / "removals.yaml").read_text().split("\nchanges:\n")[0]
    symbols = re.findall(r"^  - id: (\w+)$", text, re.M)
    found = re.findall(r"name: (\w+)|^    op_name: (\w+)$|mangled: (\w+)$|^  package: (\w+)$", text, re.M)
    words = {word for match in found for word in match if word}.union(symbols)
    for line in re.findall(r"templates: \[(.*)\]", text):
        words.update(line.split(", "))
    return sorted(words), symbols


def measure(command, output, **options):
    """(seconds, processor seconds, peak memory in MB) of one run."""
    with open(output, "wb") as file:
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, **options)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
    if os.waitstatus_to_exitcode(status) not in range(8):
        sys.exit(f"bench_scan: {' '.join(map(str, command))} ended with status {os.waitstatus_to_exitcode(status)}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    folder = build / "bench-scan"
    folder.mkdir(parents=True, exist_ok=True)
    tree, parts = folder / "tree", json.dumps([FILES, LARGEST, PARTS])
    made = folder / "parts"  # that the tree was made of
    if not (tree.exists() and made.exists() and made.read_text() == parts):
        shutil.rmtree(tree, ignore_errors=True)
        download(folder)
        make_tree(folder)
        made.write_text(parts)
    paths = [p for p in tree.rglob("*") if p.is_file() and ".git" not in p.parts]
    words, symbols = names()
    (folder / "names").write_text("\n".join(words) + "\n")
    (folder / "names-65").write_text("\n".join(symbols[:65]) + "\n")
    print(f"{len(paths)} files, {sum(p.stat().st_size for p in paths) / 1e6:.1f} MB, {os.cpu_count()} processors, {rounds} rounds")
    print(f"rg gets the {len(words)} names that the scanner itself looks for: {len(symbols)} symbols, and what they are called as Python function, operator, C++ function "
          "and template; and once the first 65 symbols alone")
    commands = {
        "scan": [str(build / "bin/sgl-migrate"), "scan", "--no-cache", *CHOICE, "tree"],
        "rg": ["rg", "-l", "-w", "-f", "names", "tree"],
        "rg, 65": ["rg", "-l", "-w", "-f", "names-65", "tree"],
        "ast-grep": [str(folder / "tools/bin/ast-grep"), "run", "-l", "python", "-p", PATTERN, "tree"],
    }
    edits = {
        "again": (tree / "sglang/sglang/srt/layers/moe/topk.py", b"# %d\n"),
        "header": (tree / "vllm/csrc/ops.h", b"int bench_%d(int);\n"),
        # Of all headers of the tree the one that most files with a hit depend on: 8 are analysed again.
        "worst": (tree / "flashinfer_python/include/flashinfer/exception.h", b"int bench_%d(int);\n"),
    }
    runs = {name: [] for name in [*commands, *edits]}
    cache = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    again = [str(build / "bin/sgl-migrate"), "scan", *CHOICE, "tree"]
    before = {name: path.read_bytes() for name, (path, _) in edits.items()}
    for round in range(rounds + 1):  # the first one warms the page cache
        for name, command in commands.items():
            if name != "ast-grep" or round <= 5:
                runs[name].append(measure(command, folder / f"{name}.out", cwd=folder))
        for name, (path, comment) in edits.items():
            path.write_bytes(before[name] + comment % round)
            runs[name].append(measure(again, folder / "again.out", cwd=folder, env=cache))
    for name, (path, _) in edits.items():
        path.write_bytes(before[name])
        commands[name] = again
    time_of, cpu = ({name: statistics.median(run[i] for run in list[1:]) for name, list in runs.items()} for i in (0, 1))
    peak = {name: max(run[2] for run in list[1:]) for name, list in runs.items()}
    for name, command in commands.items():
        note = f"  (cache, {edits[name][0].name} edited before each)" if name in edits else ""
        print(f"{name:10} {time_of[name] * 1000:7.0f} ms, processors {cpu[name] * 1000:7.0f} ms {peak[name]:6.0f} MB  "
              f"{' '.join(command).replace(str(build), 'BUILD')}{note}")
    musts = [
        ("scan / rg", "scan", "rg", "<=", 1.5),
        ("ast-grep / scan", "ast-grep", "scan", ">=", 5),
        ("second scan / scan", "again", "scan", "<=", 0.2),
        ("header / scan", "header", "scan", "<=", 0.2),
        ("worst header / scan", "worst", "scan", "<=", None),
        ("scan / rg, 65 names", "scan", "rg, 65", "<=", None),
    ]
    missed = peak["scan"] > 300
    for what, one, other, sign, limit in musts:
        value = time_of[one] / time_of[other]
        good = limit is None or (value <= limit if sign == "<=" else value >= limit)
        missed += not good
        must = f"  must {sign} {limit}{'' if good else '  MISSED'}" if limit else ""
        print(f"{what:19} {value:7.2f}, of processor time {cpu[one] / cpu[other]:7.2f}{must}")
    print(f"peak memory, MB     {peak['scan']:7.0f}  must <= 300{'  MISSED' if peak['scan'] > 300 else ''}")
    return 1 if missed else 0


sys.exit(main())
