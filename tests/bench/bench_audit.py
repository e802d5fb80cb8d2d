#!/usr/bin/env python3
"""usage: bench_audit.py BUILD [PATH...]

Time and memory of sgl-migrate audit on two cores, files in the page cache. Without PATH on what is made here: a
site-packages folder of 600 MB, which has to take 3 s at most, and a wheel of 500 MB, which has to be read once, with
150 MB of memory at most. Exit status 1 when one of them is missed. With PATH only the figures, of real ones."""
import os, pathlib, random, subprocess, sys, tempfile, time, zipfile

BUILD = pathlib.Path(sys.argv[1]).resolve()
TOOL = BUILD / "bin" / "sgl-migrate"
MB = 1000 * 1000
SECONDS_MOST, MEMORY_MOST = 3.0, 150 * MB
TRIES = 5
EIGHT = bytes(i % 8 * 29 for i in range(256))  # packs to 0.4 of it, as CUDA code does
CORES = sorted(os.sched_getaffinity(0))[:2]


def audit(path, *args):
    """(seconds, processor seconds, bytes of memory, bytes read, output)"""
    start = time.monotonic()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen([TOOL, "audit", "--kernel", "0.4.6", "--format", "tsv", *args, path], stdout=out, preexec_fn=lambda: os.sched_setaffinity(0, CORES))
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        seconds = time.monotonic() - start
        read = int(pathlib.Path(f"/proc/{child.pid}/io").read_text().split("rchar: ")[1].split()[0])
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, read, out.read().decode()


def library(folder, name, size, noise):
    """A library of `size` bytes as real ones are: 20000 symbols, read-only strings, code, and CUDA code, which is most of it."""
    source, blob, text = folder / "x.c", folder / "blob", folder / "text"
    if not text.exists():
        words = random.Random(1)
        text.write_bytes(b"".join(bytes(words.choices(b"abcdefghijklmnopqrstuvwxyz_:. (),", k=words.randrange(3, 40))) + b"\0" for _ in range(200000)))
        source.write_text('__asm__(".section .rodata,\\"a\\"\\n.incbin \\"text\\"\\n.section .nv_fatbin,\\"a\\"\\n.incbin \\"blob\\"\\n.text");\n'
                          'const char *op(void) { return "sgl_kernel::bmm_fp8"; }\nvoid need(void) __asm__("_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_");\nvoid use(void) { need(); }\n' +
                          "".join(f"void some_namespace_kernel_{i}(void) {{ use(); }}\n" for i in range(20000)))
    header = (0xBA55ED50).to_bytes(4, "little") + b"\1\0\x10\0"
    rest = size - text.stat().st_size - 5 * MB
    blob.write_bytes(header + (rest - 16).to_bytes(8, "little") + (os.urandom(rest - 16).translate(EIGHT) if noise else bytes(rest - 16)))
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-nostdlib", "-Wl,--hash-style=gnu", "-o", folder / name, "x.c"], cwd=folder, check=True)
    return (folder / name).read_bytes()


def make(folder):
    """(site-packages folder, wheel)"""
    site, wheel = folder / "site-packages", folder / "fastops-1.0-cp39-abi3-linux_x86_64.whl"
    small, large = library(folder, "small.so", 27 * MB, False), library(folder, "large.so", 90 * MB, True)
    for package in range(20):
        (site / f"p{package}").mkdir(parents=True)
        (site / f"p{package}/_C.abi3.so").write_bytes(small)
        for module in range(800):
            (site / f"p{package}/m{module}.py").write_bytes(b"def f(a, b):\n    return a + b\n\n" * 200)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for i in range(13):
            archive.writestr(f"fastops/_C{i}.abi3.so", large)
    return site, wheel


def size_of(path):
    return sum(os.lstat(os.path.join(at, name)).st_size for at, _, names in os.walk(path) for name in names) if path.is_dir() else path.stat().st_size


def show(path, runs):
    best = min(runs)
    print(f"{path.name}: {size_of(path) / MB:.0f} MB: {best[0]:.2f} to {max(runs)[0]:.2f} s, {best[1]:.2f} processor seconds, "
          f"{max(r[2] for r in runs) / MB:.0f} MB of memory, {best[3] / MB:.0f} MB read, {len(best[4].splitlines())} rows, on {len(CORES)} cores", flush=True)


def main():
    if len(sys.argv) > 2:
        for path in map(pathlib.Path, sys.argv[2:]):
            audit(path)
            show(path, [audit(path) for _ in range(TRIES)])
        return 0
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        site, wheel = make(pathlib.Path(folder))
        missed = []
        audit(site)
        runs = [audit(site) for _ in range(TRIES)]
        show(site, runs)
        if min(runs)[0] > SECONDS_MOST:
            missed.append(f"{site.name}: more than {SECONDS_MOST} s")
        if len(runs[0][4].splitlines()) != 40:
            missed.append(f"{site.name}: wrong rows")
        runs = [audit(wheel) for _ in range(2)]
        show(wheel, runs)
        if max(r[2] for r in runs) > MEMORY_MOST:
            missed.append(f"{wheel.name}: more than {MEMORY_MOST // MB} MB of memory")
        if runs[0][3] > 1.2 * wheel.stat().st_size:
            missed.append(f"{wheel.name}: read more than once")
        if len(set(runs[0][4].splitlines())) != 2:
            missed.append(f"{wheel.name}: wrong rows")
        for line in missed:
            print(f"MISSED {line}")
        return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
