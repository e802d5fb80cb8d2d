#!/usr/bin/env python3
"""sgl-jit: every command, on good and bad ground. Real NVRTC where it is (on this machine, or put there by make deps); the GPUs
are the fake driver's. The folders, the home and the environment are each test's own."""
import ctypes, fcntl, glob, json, os, pathlib, pty, re, resource, shutil, stat, struct, subprocess, sys, tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from suite import Skip, main

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["BUILD_DIR"]).resolve()
TOOL = BUILD / "bin" / "sgl-jit"
FAKES = BUILD / "tests" / "jit"
ROUTER, FUSED = "dsv3_router_gemm:8x256:float32", "dsv3_fused_a_gemm:16x256:bfloat16"
COMMANDS = ("warm", "pack", "list", "verify", "prune", "info")


def equal(have, want):
    if have != want:
        raise AssertionError(f"\n  have: {have!r}\n  want: {want!r}")


def contains(have, *parts):
    for part in parts:
        if part not in have:
            raise AssertionError(f"\n  have: {have!r}\n  want within: {part!r}")


def nvrtc():
    """The file to name in SGL_KERNEL_JIT_NVRTC, "" where the library finds one itself."""
    if "libnvrtc.so.13" in subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout:
        return ""
    for folder in (BUILD, BUILD.parent):
        for found in sorted(glob.glob(f"{folder}/deps/nvrtc/nvidia/*/lib/libnvrtc.so.1[23]")):
            return found
    if glob.glob("/usr/local/cuda*/lib64/libnvrtc.so.1[23]"):
        return ""
    raise Skip("no NVRTC")


class Place(tempfile.TemporaryDirectory):
    """A home, a cache folder that is not there yet, and an environment that knows of nothing else."""

    def __init__(self, **environment):
        super().__init__(prefix="sgl-jit-test-")
        self.path = pathlib.Path(self.name).resolve()
        self.cache = self.path / "cache"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SGL_", "TRTLLM_", "CUDA_", "XDG_", "LD_", "NO_COLOR"))}
        self.env = dict(kept, HOME=str(self.path / "home"), SGL_KERNEL_JIT_CACHE_DIR=str(self.cache), TERM="dumb", **environment)

    def __enter__(self):
        return self

    def real(self):
        found = nvrtc()
        if found:
            self.env["SGL_KERNEL_JIT_NVRTC"] = found
        return self

    def no_nvrtc(self):
        self.env["SGL_KERNEL_JIT_NVRTC"] = "/nowhere/libnvrtc.so.13"
        return self

    def gpus(self, **fields):
        """The fake driver, with other devices than its own: statements of C that run when it is loaded."""
        folder = self.path / "driver"
        folder.mkdir(exist_ok=True)
        if fields:
            variant(folder / "libcuda.so.1", "fake_cuda", fields)
        else:
            shutil.copy(FAKES / "fake_cuda.so", folder / "libcuda.so.1")
        self.env["LD_LIBRARY_PATH"] = str(folder)
        return self

    def fake_nvrtc(self):
        store = FAKES / "emulated"
        store.mkdir(exist_ok=True)
        self.env.update(SGL_KERNEL_JIT_NVRTC=str(FAKES / "fake_nvrtc.so"), SGL_TEST_STORE=str(store))
        return self

    def run(self, *args, status=0, env=None, **options):
        done = subprocess.run([TOOL, *map(str, args)], env=dict(self.env, **(env or {})), cwd=self.path, capture_output=True,
                              timeout=120, **options)
        done.out, done.err = done.stdout.decode(errors="surrogateescape"), done.stderr.decode(errors="surrogateescape")
        if done.returncode != status or "Sanitizer" in done.err:
            raise AssertionError(f"sgl-jit {' '.join(map(str, args))}: status {done.returncode}, not {status}\n{done.out}{done.err}")
        return done

    def usage(self, *args, says, **options):
        done = self.run(*args, status=2, **options)
        equal((done.out, done.err.count("\n")), ("", 1))
        contains(done.err, "sgl-jit: ", says)
        equal(self.cache.exists(), False)

    def entries(self, folder=None):
        return sorted(p.name for p in (folder or self.cache).iterdir() if not p.name.startswith("."))

    def listed(self, status=0):
        return json.loads(self.run("list", "--format", "json", status=status).out)


def variant(path, fake, fields):
    source = path.with_suffix(".c")
    source.write_text(f'#include "tests/jit/{fake}.c"\n__attribute__((constructor)) static void set(void) {{\n' +
                      "".join(f"  {fake}.{name} = {value};\n" for name, value in fields.items()) + "}\n")
    subprocess.run([os.environ.get("CC", "gcc"), "-D_GNU_SOURCE", "-w", "-fPIC", "-shared", f"-Wl,-soname,{path.name}", "-I", ROOT, "-I",
                    ROOT / "jit" / "include", "-o", path, source, "-lpthread", "-ldl"], check=True, cwd=ROOT)


def compile_c(path, text, *more):
    source = path.with_suffix(".c")
    source.write_text(text)
    subprocess.run([os.environ.get("CC", "gcc"), "-D_GNU_SOURCE", "-fPIC", "-shared", "-o", path, source, *more], check=True)


_packed = None


def packed():
    """A folder with four kernels of the real NVRTC, made once."""
    global _packed
    if not _packed:
        _packed = Place().real()
        _packed.run("pack", "--target", "sm_90a,sm_100a", "--output", _packed.path / "packed", ROUTER, FUSED)
    return _packed.path / "packed"


def fill(place):
    """The cache with the packed kernels, as warm would have made it; the names of its entries."""
    shutil.copytree(packed(), place.cache)
    place.cache.chmod(0o700)
    return place.entries()


# --- the format of an entry, for what only a hand can make ---


class Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def xxh128(data):
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_128bits.restype = Hash
    library.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return library.XXH3_128bits(data, len(data))


def decode(data):
    magic, key_size, image_size = struct.unpack_from("<8sQQ", data)
    equal((magic, len(data)), (b"SGLJIT1\0", 24 + key_size + image_size + 16))
    return data[24:24 + key_size], data[24 + key_size:-16]


def put(folder, key, image):
    """An entry as the library would write it; its name."""
    body = struct.pack("<8sQQ", b"SGLJIT1\0", len(key), len(image)) + key + image
    total, name = xxh128(body), xxh128(b"SGLJIT1\0" + key)
    file = folder / (re.search(rb"^kernel (\w+)", key, re.M)[1].decode() + f"-{name.high:016x}{name.low:016x}")
    file.write_bytes(body + struct.pack("<QQ", total.low, total.high))
    file.chmod(0o600)
    return file.name


def entry_for(folder, kernel, target):
    for file in folder.glob("[!.]*"):  # no lock files
        key, image = decode(file.read_bytes())
        if f"kernel {kernel}\ntarget {target}\n".encode() in key:
            return file, key, image
    raise AssertionError(f"no {kernel} for {target} in {folder}")


# --- the command line ---


def test_help_and_version():
    with Place() as place:
        top = place.run("--help")
        equal((top.err, place.run("-h").out), ("", top.out))
        contains(top.out, "usage: sgl-jit COMMAND", "exit status:", "examples:", *(f"\n  {c} " for c in COMMANDS))
        texts = [top.out]
        for command in COMMANDS:
            done = place.run(command, "--help")
            equal((done.err, place.run(command, "nonsense:", "-h", status=0).out), ("", done.out))
            contains(done.out, f"usage: sgl-jit {command} ", "exit status:", "examples:", "-h, --help")
            texts.append(done.out)
        equal(max(len(line) for text in texts for line in text.splitlines()) <= 120, True)
        version = place.run("--version")
        equal((version.err, bool(re.fullmatch(r"sgl-jit \d+\.\d+\.\d+\n", version.out))), ("", True))


def test_every_option_is_in_help_and_man_page():
    man = (ROOT / "docs" / "sgl-jit.1").read_text().replace("\\-", "-")
    with Place() as place:
        for command in COMMANDS:
            for option in set(re.findall(r"--[a-z][a-z-]+", place.run(command, "--help").out)):
                contains(man, option)
            contains(man, f"sgl-jit {command}")


def test_wrong_usage_is_one_line():
    with Place() as p:
        p.usage(says="a command is needed")
        p.usage("frobnicate", says="unknown command 'frobnicate'")
        p.usage("--frobnicate", says="unknown option --frobnicate")
        for command in COMMANDS:
            p.usage(command, "--frobnicate", says=f"unknown option --frobnicate; see sgl-jit {command} --help")
            p.usage(command, "-x", says=f"unknown option -x; see sgl-jit {command} --help")
        p.usage("list", "--bad", says="list takes no option --bad")
        p.usage("warm", "--output", "x", says="warm takes no option --output")
        p.usage("info", "--format", "tsv", says="--format 'tsv': text or json is needed")
        p.usage("list", "--format", "xml", says="--format 'xml': text, json or tsv is needed")
        p.usage("list", "x", says="list takes no argument 'x'")
        p.usage("warm", says="warm needs a SPEC, --model, --stats or --file")
        p.usage("warm", "--target", says="--target needs a value")
        p.usage("warm", "--device", "0", "--target", "sm_90a", ROUTER, says="--device and --target exclude each other")
        for device in ("-1", "x", "1x", "", "99999"):
            p.usage("warm", f"--device={device}", ROUTER, says=f"--device '{device}': the number of a GPU")
        p.usage("warm", "--model", "gpt-2", says="--model 'gpt-2': deepseek-v3 or kimi-k2")
        p.usage("pack", "--target", "sm_90a", ROUTER, says="pack needs --target and --output")
        p.usage("pack", "--output", "x", ROUTER, says="pack needs --target and --output")
        p.usage("prune", says="prune needs --older-than, --max-size, --bad or --all")
        for value in ("", "30", "d", "-1d", "3 d", "1y", "99999999999999999999d", "9223372036854775807w"):
            p.usage("prune", "--older-than", value, says=f"--older-than '{value}': a number and a unit")
        for value in ("", "M", "-1M", "1X", "1KB", "99999999999999999999"):
            p.usage("prune", "--max-size", value, says=f"--max-size '{value}': a number and a unit")


def test_targets():
    with Place() as p:
        for target in ("", "90a", "sm_", "sm_x", "compute_90", "sm_90b", "sm_+90a", "sm_90a ", "sm_1000a", "native"):
            p.usage("warm", "--target", target, ROUTER, says=f"--target '{target}': a name like sm_90a is needed")
        p.usage("warm", "--target", "sm_90", ROUTER, says="--target 'sm_90': on such a GPU the library looks for sm_90a")
        p.usage("warm", "--target", "sm_75", ROUTER, says="--target 'sm_75': GPUs older than sm_80")
        p.usage("warm", "--target", "sm_90a,", ROUTER, says="--target ''")
        p.usage("warm", "--target", "sm_90a", "--target", "sm_80,sm_90a", ROUTER, says="--target 'sm_90a': named twice")


WRONG_SPECS = {
    "": "there is no operator ''", "router:8x256:float32": "there is no operator 'router", "dsv3_router_gemm": "has no shape",
    "dsv3_router_gemmm:8x256:float32": "no operator", "dsv3_router_gemm:": "has no shape", "dsv3_router_gemm:8": "has no shape",
    "dsv3_router_gemm:x256:float32": "has no shape", "dsv3_router_gemm:8x:float32": "has no shape",
    "dsv3_router_gemm:-8x256:float32": "has no shape", "dsv3_router_gemm: 8x256:float32": "has no shape",
    "dsv3_router_gemm:8x256": "has no output type", "dsv3_router_gemm:8x256:": "ends with ':'",
    "dsv3_router_gemm:8x256:half": "ends with ':half'", "dsv3_router_gemm:8x256:float32x": "ends with 'x'",
    "dsv3_router_gemm:8x99999999999999999999:float32": "has no shape",
    "dsv3_router_gemm:7x256:float32": "num_experts", "dsv3_router_gemm:8x100:float32": "hidden_dim",
    "dsv3_router_gemm:0x256:float32": "num_experts", "dsv3_router_gemm:1032x256:float32": "num_experts",
    "dsv3_fused_a_gemm:8x256": "hd_out", "dsv3_fused_a_gemm:16x100": "hd_in", "dsv3_fused_a_gemm:16x256:float32": "bfloat16",
}


def test_specs():
    with Place() as p:
        for spec, says in WRONG_SPECS.items():
            p.usage("warm", "--target", "sm_90a", spec, says=says)
            if spec:
                p.usage("warm", "--target", "sm_90a", "-f", "-", input=f"{ROUTER}\n\n{spec}  # what\n".encode(),
                        says=f"standard input:3: ")


def test_output_that_does_not_arrive():
    commands = [["--help"], ["--version"], ["list"], ["list", "--format", "json"], ["verify"], ["info"], ["info", "--format", "json"],
                ["prune", "--all"], ["warm", "--help"]]
    with Place().no_nvrtc() as p, open("/dev/full", "w") as full:
        p.cache.mkdir(0o700)
        for args in commands:
            done = subprocess.run([TOOL, *args], env=p.env, stdout=full, stderr=subprocess.PIPE, text=True)
            equal((args, done.returncode, done.stderr), (args, 1, "sgl-jit: standard output: No space left on device\n"))
            read, write = os.pipe()
            os.close(read)
            done = subprocess.run([TOOL, *args], env=p.env, stdout=write, stderr=subprocess.PIPE, text=True)
            os.close(write)
            equal((args, done.returncode, done.stderr), (args, 1, "sgl-jit: standard output: Broken pipe\n"))
            done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", TOOL, *args], env=p.env, stderr=subprocess.PIPE, text=True)
            equal((args, done.returncode, done.stderr), (args, 1, "sgl-jit: standard output: Bad file descriptor\n"))


def on_terminal(place, *args, **env):
    """Standard output and error of a terminal."""
    main_end, end = pty.openpty()
    process = subprocess.Popen([TOOL, *map(str, args)], env=dict(place.env, TERM="xterm", **env), stdin=end, stdout=end, stderr=end,
                               cwd=place.path)
    os.close(end)
    text = b""
    while True:
        try:
            part = os.read(main_end, 4096)
        except OSError:
            break
        if not part:
            break
        text += part
    os.close(main_end)
    process.wait()
    return text.decode()


def test_colour_and_progress():
    with Place().gpus().fake_nvrtc() as p:
        text = on_terminal(p, "warm", ROUTER, FUSED)
        contains(text, "\r\x1b[K[1/2] dsv3_router_gemm:8x256:float32 for sm_90a", "\x1b[32mcompiled in ", "\x1b[0m")
        equal("\x1b[3" in on_terminal(p, "warm", ROUTER, NO_COLOR="1"), False)
        contains(on_terminal(p, "list"), "\x1b[31mbad")  # the fake's code is not CUDA's
        equal("\x1b" in on_terminal(p, "list", NO_COLOR="1"), False)
        equal("\x1b" in p.run("warm", ROUTER).out + p.run("warm", ROUTER).err, False)
        p.env["TERM"] = "xterm"
        equal("\x1b" in p.run("list", status=1).out, False)


# --- warm ---


def test_warm_for_a_target():
    with Place().real() as p:
        lines = p.run("warm", "--target", "sm_90a", ROUTER, FUSED).out.splitlines()
        for line, spec in zip(lines, (ROUTER, FUSED)):
            equal(bool(re.fullmatch(re.escape(spec) + r" +sm_90a +compiled in \d+ ms", line)), True)
        equal(len(p.entries()), 2)
        again = p.run("warm", "--target", "sm_90a,sm_100a", ROUTER, FUSED, "dsv3_fused_a_gemm:16x256").out.splitlines()
        equal([re.sub(r" \d+ ms", "", line.split("  ")[-1].strip()) for line in again],
              ["cached", "cached", "compiled in", "compiled in"])
        equal([line.split()[1] for line in again], ["sm_90a", "sm_90a", "sm_100a", "sm_100a"])
        equal([e for e in p.entries() if (p.cache / e).read_bytes() != (packed() / e).read_bytes()], [])
        contains(p.run("verify").out, "\n4 ok, 0 of other versions, 0 bad\n")


def test_warm_for_each_mode_of_dependent_launch():
    """A kernel is compiled for one mode: warm and pack make it for the one they are started with, and know the others."""
    modes = {"off": {}, "on": {"TRTLLM_ENABLE_PDL": "1"}, "no-prefetch": {"TRTLLM_ENABLE_PDL": "1", "SGL_KERNEL_JIT_PDL_PREFETCH": "0"}}
    with Place().real() as p:
        for mode, variables in modes.items():
            env = dict(p.env, **variables)
            for says in ("compiled in", "cached"):
                contains(p.run("warm", "--target", "sm_90a", ROUTER, env=env).out, says)
            # before 9.0 there is no such launch: one kernel for all modes
            contains(p.run("warm", "--target", "sm_80", ROUTER, env=env).out, "compiled in" if mode == "off" else "cached")
            p.run("pack", "--target", "sm_90a", "--output", p.path / mode, ROUTER, env=env)
            equal([e["pdl"] for e in json.loads(p.run("list", "--format", "json", env=dict(env, SGL_KERNEL_JIT_PREBUILT_DIR=p.path / mode)).out)["entries"]
                   if e["folder"] == "prebuilt"], [mode])
        entries = p.listed()["entries"]
        equal(sorted((e["target"], e["pdl"], e["state"]) for e in entries),
              [("sm_80", "off", "ok"), ("sm_90a", "no-prefetch", "ok"), ("sm_90a", "off", "ok"), ("sm_90a", "on", "ok")])
        contains(p.run("verify").out, "\n4 ok, 0 of other versions, 0 bad\n")


def test_warm_replaces_what_is_bad():
    with Place().real() as p:
        names = fill(p)
        name = entry_for(p.cache, ROUTER, "sm_90a")[0].name
        good = (p.cache / name).read_bytes()
        (p.cache / name).write_bytes(good[:-1])
        contains(p.run("warm", "--target", "sm_90a", ROUTER).out, "compiled in")
        equal((p.cache / name).read_bytes() == good, True)
        (p.cache / name).unlink()
        (p.cache / name).symlink_to(p.path / "elsewhere")
        contains(p.run("warm", "--target", "sm_90a", ROUTER).out, "compiled in")
        equal(((p.cache / name).is_symlink(), (p.path / "elsewhere").exists(), p.entries()), (False, False, names))
        contains(p.run("warm", "--target", "sm_90a", ROUTER).out, "cached")


def test_models():
    with Place().real() as p:
        out = p.run("warm", "--target", "sm_90a", "--model", "deepseek-v3").out
        equal([line.split()[0] for line in out.splitlines()],
              ["dsv3_router_gemm:256x7168:float32", "dsv3_fused_a_gemm:2112x7168:bfloat16"])
        equal(len(p.entries()), 2)
        out = p.run("warm", "--target", "sm_90a", "--model", "kimi-k2", "--model", "deepseek-v3").out
        equal([(line.split()[0], line.split()[2]) for line in out.splitlines()],
              [("dsv3_router_gemm:384x7168:float32", "compiled"), ("dsv3_fused_a_gemm:2112x7168:bfloat16", "cached"),
               ("dsv3_router_gemm:256x7168:float32", "cached")])
        equal(len(p.entries()), 3)


def test_specs_from_files():
    with Place().gpus().fake_nvrtc() as p:
        (p.path / "specs").write_bytes(f"# two\n\n  {ROUTER}\t# one\r\n{FUSED}\n{ROUTER}\n".encode())
        (p.path / "more").write_text("dsv3_fused_a_gemm:16x256")
        equal([line.split()[0] for line in p.run("warm", "-f", "specs", "--file", "more").out.splitlines()], [ROUTER, FUSED])
        equal(p.run("warm", "-f", "-", input=ROUTER.encode()).out.split()[0], ROUTER)
        done = p.run("warm", "-f", "-", input=b"# nothing\n")
        equal((done.out, done.err), ("", "sgl-jit: no kernel is named: nothing to do\n"))
    with Place() as p:
        p.usage("warm", "-f", "missing", says="--file missing: No such file or directory")
        p.usage("warm", "-f", ".", says=".: Is a directory")
        (p.path / "two").write_text(f"{ROUTER} {FUSED}\n")
        p.usage("warm", "-f", "two", says=f"two:1: one SPEC on each line is needed, got another one: {FUSED}")
        (p.path / "binary").write_bytes(b"# a\nb\0c\n")
        p.usage("warm", "-f", "binary", says="binary:2: a NUL byte")
        p.usage("pack", "--target", "sm_90a", "-o", "x", "-f", "-", input=b"", says="no kernel is named: nothing to pack")


def test_specs_from_findings():
    def sarif(rules):
        return json.dumps({"version": "2.1.0", "runs": [{"results": [{"ruleId": rule, "properties": {"verdict": verdict}} for rule, verdict in rules.items()]}]})

    router, fused = "dsv3_router_gemm:256x7168:float32", "dsv3_fused_a_gemm:2112x7168:bfloat16"
    with Place().fake_nvrtc().gpus() as p:
        (p.path / "router").write_text(sarif({"awq_dequantize": "rewrite", "dsv3_router_gemm": "rewrite", "dsv3_fused_a_gemm": "mention"}))
        (p.path / "fused").write_text(sarif({"dsv3_fused_a_gemm": "report"}))
        (p.path / "none").write_text(sarif({"awq_dequantize": "rewrite"}))
        warmed = lambda *options: [line.split()[0] for line in p.run("warm", "--model", "deepseek-v3", *options).out.splitlines()]
        equal(warmed("--sarif", "router"), [router])
        equal(warmed("--sarif", "fused"), [fused])
        equal(warmed("--sarif", "router", "--sarif", "fused"), [router, fused])
        equal(warmed("--sarif", "none"), [])
        equal(warmed(), [router, fused])
    with Place() as p:
        (p.path / "router").write_text(sarif({"dsv3_router_gemm": "rewrite"}))
        (p.path / "other").write_text("{}")
        (p.path / "text").write_text("no JSON")
        (p.path / "cut").write_text('{"runs": [{"results": []}, {}]}')
        p.usage("warm", "--model", "deepseek-v3", "--sarif", "cut", says="--sarif cut: runs[1] has no results: the scan did not end")
        p.usage("warm", "--sarif", "router", says="--model is needed too")
        p.usage("warm", "--model", "deepseek-v3", "--sarif", "other", says="--sarif other: no SARIF: it has no runs")
        p.usage("warm", "--model", "deepseek-v3", "--sarif", "text", says="--sarif text: ")
        p.usage("warm", "--model", "deepseek-v3", "--sarif", "missing", says="--sarif missing: ")


def test_specs_from_statistics():
    header = json.dumps({"schema": "sgl-kernel-compat-usage/1", "host": "node1"}) + "\n"
    use = json.dumps({"symbol": "dsv3_router_gemm", "face": "cxx", "calls": {"warn": 3}, "first": 1764547200}) + "\n"
    router, fused = (json.dumps({"kernel": kernel, "calls": 3}) + "\n" for kernel in (ROUTER, FUSED.removesuffix(":bfloat16")))
    with Place().fake_nvrtc().gpus() as p:
        (p.path / "one.jsonl").write_text(header + use + router)
        (p.path / "two.jsonl").write_text(header + router + fused)
        equal([line.split()[0] for line in p.run("warm", "--stats", "one.jsonl", "--stats", "two.jsonl").out.splitlines()], [ROUTER, FUSED])
        both = ((p.path / "two.jsonl").read_text() + (p.path / "one.jsonl").read_text()).encode()
        equal([line.split()[0] for line in p.run("warm", "--stats", "-", input=both).out.splitlines()], [ROUTER, FUSED])
        equal([line.split()[0] for line in p.run("warm", "--stats", ".").out.splitlines()], [ROUTER, FUSED])  # a folder's files
        (p.path / "jobs" / "monday").mkdir(parents=True)  # its folders' files, too
        (p.path / "jobs" / "tuesday" / "night").mkdir(parents=True)
        (p.path / "jobs" / ".hidden").mkdir()
        (p.path / "jobs" / "monday" / "one.jsonl").write_text(header + router)
        (p.path / "jobs" / "tuesday" / "night" / "two.jsonl").write_text(header + fused)
        (p.path / "jobs" / ".hidden" / "three.jsonl").write_text("no statistics")
        (p.path / "jobs" / "tuesday" / "around").symlink_to("..")
        equal([line.split()[0] for line in p.run("warm", "--stats", "jobs").out.splitlines()], [ROUTER, FUSED])
        (p.path / "unused.jsonl").write_text(header)
        done = p.run("warm", "--stats", "unused.jsonl")
        equal((done.returncode, done.out), (0, ""))
        contains(done.err, "no kernel is named: nothing to do")
    with Place() as p:
        for name, text, says in (("no", "{}\n", "no: no statistics of SGL_KERNEL_COMPAT_STATS"), ("other", use, "other: no statistics"),
                                 ("list", header + "[\n", "list:2: no line of statistics"), ("array", header + "[]\n", "array:2: no line of statistics"),
                                 ("number", header + '{"kernel": 5}\n', "number:2: no line of statistics"), ("empty", "", "empty: no statistics of SGL_KERNEL_COMPAT_STATS: it is empty"),
                                 ("kernel", header + json.dumps({"kernel": "dsv4:1x2"}) + "\n", "kernel:2: ")):
            (p.path / name).write_text(text)
            p.usage("warm", "--stats", name, says=says)
        (p.path / "none" / "lower").mkdir(parents=True)
        p.usage("warm", "--stats", "none", says="--stats none: neither the folder nor one in it has a .jsonl file")
        (p.path / "none" / "lower" / "no.jsonl").write_text("{}\n")
        p.usage("warm", "--stats", "none", says="none/lower/no.jsonl: no statistics of SGL_KERNEL_COMPAT_STATS")
        (p.path / "none" / "lower" / "no.jsonl").unlink()
        os.mkfifo(p.path / "none" / "x.jsonl")
        p.usage("warm", "--stats", "none", says="--stats none/x.jsonl: it is no file")
        p.usage("warm", "--stats", "missing", says="--stats missing: No such file or directory")
        p.usage("pack", "--target", "sm_90a", "-o", "x", "--stats", "no", says="pack takes no option --stats")


def test_warm_for_the_gpus():
    with Place().gpus().fake_nvrtc() as p:
        out = p.run("warm", ROUTER, FUSED).out.splitlines()
        equal([line.split()[:4] for line in out], [[s, "sm_90a", "cuda:0,1", "compiled"] for s in (ROUTER, FUSED)])
        equal([line.split()[2:] for line in p.run("warm", ROUTER, "--device", "1").out.splitlines()], [["cuda:1", "cached"]])
        equal(p.run("warm", ROUTER, "--device", "2", status=2).err, "sgl-jit: --device 2: the driver has 2 GPUs, counted from 0\n")
        shutil.rmtree(p.cache)
        out = p.run("warm", "--device", "1", ROUTER, env={"SGL_KERNEL_JIT_PREBUILT_DIR": str(packed_by_fake(p))}).out
        equal(out.split()[2:], ["cuda:1", "prebuilt"])


def packed_by_fake(place):
    place.run("pack", "--target", "sm_90a", "-o", "prebuilt", ROUTER, FUSED)
    return place.path / "prebuilt"


def test_warm_for_mixed_gpus():
    with Place().fake_nvrtc().gpus(major="8", minor="0", device_count="1") as p:
        equal(p.run("warm", ROUTER).out.split()[1:4], ["sm_80", "cuda:0", "compiled"])
    with Place().fake_nvrtc().gpus(major="7", minor="5", device_count="1") as p:
        contains(p.run("warm", ROUTER, status=1).out, "sm_75", "failed: ", "compute capability 7.5")
    with Place().fake_nvrtc().gpus(init_error="100") as p:
        done = p.run("warm", ROUTER, status=1)
        equal(done.out, "")
        contains(done.err, "no GPU to compile for: cuInit failed with CUDA_ERROR_NO_DEVICE", "--target sm_90a")
    with Place().fake_nvrtc().gpus(load_error="200") as p:
        contains(p.run("warm", ROUTER, status=1).out, "failed: the driver refused the compiled kernel")


def test_warm_that_cannot_keep():
    with Place().gpus().fake_nvrtc() as p:
        for target in ([], ["--target", "sm_90a"]):
            done = p.run("warm", *target, ROUTER, status=1, env={"SGL_KERNEL_JIT_CACHE_DIR": "relative"})
            contains(done.out, "failed: ", "SGL_KERNEL_JIT_CACHE_DIR is not an absolute path: relative")
            p.cache.mkdir()
            p.cache.chmod(0o777)
            contains(p.run("warm", *target, ROUTER, status=1).out, "failed: ", str(p.cache), "may be written by others; chmod go-w it")
            p.cache.rmdir()
            p.cache.write_text("")
            contains(p.run("warm", *target, ROUTER, status=1).out, "failed: ", str(p.cache), "Not a directory")
            p.cache.unlink()
            env = {"SGL_KERNEL_JIT_CACHE_DIR": "", "HOME": "", "XDG_CACHE_HOME": ""}
            contains(p.run("warm", *target, ROUTER, status=1, env=env).out, "failed: ", "HOME")


def test_warm_without_nvrtc_or_gpu():
    with Place().no_nvrtc() as p:
        contains(p.run("warm", ROUTER, status=1).err, "no GPU to compile for: no CUDA driver: libcuda.so.1")
        out = p.run("warm", "--target", "sm_90a", ROUTER, FUSED, status=1).out.splitlines()
        equal([" failed: SGL_KERNEL_JIT_NVRTC names no usable library: /nowhere/libnvrtc.so.13: " in line for line in out], [True] * 2)
        equal(p.entries() if p.cache.exists() else [], [])
    with Place().real() as p:
        out = p.run("warm", "--target", "sm_99a,sm_80", ROUTER, status=1).out.splitlines()
        contains(out[0], "failed: ", "NVRTC", "sm_99a")
        contains(out[1], "sm_80", "compiled in")  # one failure does not stop the others


# --- pack ---


def test_pack():
    with Place().real() as p:
        folder = p.path / "out"
        done = p.run("pack", "--target", "sm_90a", "--output", folder, ROUTER, preexec_fn=lambda: os.umask(0o077))
        equal(bool(re.fullmatch(rf"{ROUTER} +sm_90a +compiled in \d+ ms\n{folder}: 1 kernel, [\d.]+ KiB\n", done.out)), True)
        equal(p.cache.exists(), False)
        equal(stat.S_IMODE(folder.stat().st_mode), 0o755)
        equal([stat.S_IMODE(f.stat().st_mode) for f in folder.iterdir()], [0o644])
        equal(p.entries(folder), [entry_for(packed(), ROUTER, "sm_90a")[0].name])
        # Once more: replaced as a whole, in one step.
        (p.path / "link").symlink_to(folder)
        p.run("pack", "--target", "sm_100a", "--output", f"{folder}//", FUSED)
        equal(p.entries(folder), [entry_for(packed(), FUSED, "sm_100a")[0].name])
        equal(sorted(x.name for x in p.path.iterdir()), ["link", "out"])
        # A failure leaves what was there.
        p.run("pack", "--target", "sm_90a,sm_99a", "--output", folder, FUSED, status=1)
        equal(p.entries(folder), [entry_for(packed(), FUSED, "sm_100a")[0].name])
        equal(sorted(x.name for x in p.path.iterdir()), ["link", "out"])
        (p.path / "empty").mkdir()
        p.run("pack", "--target", "sm_90a", "-o", "empty", ROUTER)
        equal(len(p.entries(p.path / "empty")), 1)


def test_pack_where_names_cannot_be_exchanged():
    with Place().fake_nvrtc() as p:
        compile_c(p.path / "no_exchange.so", '#include <errno.h>\nint renameat2(int a, const char *b, int c, const char *d, unsigned e);\n'
                  "int renameat2(int a, const char *b, int c, const char *d, unsigned e) "
                  "{ (void)a, (void)b, (void)c, (void)d, (void)e; errno = EINVAL; return -1; }\n")
        env = {"LD_PRELOAD": str(p.path / "no_exchange.so")}
        p.run("pack", "--target", "sm_90a", "-o", "out", ROUTER, env=env)
        first = p.entries(p.path / "out")
        p.run("pack", "--target", "sm_90a", "-o", "out", FUSED, env=env)
        second = p.entries(p.path / "out")
        equal((len(first), len(second), first != second), (1, 1, True))
        equal([x.name for x in p.path.glob("out*")], ["out"])


def test_two_packs_at_once():
    """All succeed and are whole: one of them is there in the end, and nothing else."""
    with Place().fake_nvrtc() as p:
        for _ in range(2):  # the folder is new, then it is there
            running = [subprocess.Popen([TOOL, "pack", "--target", "sm_90a", "-o", p.path / "out", spec], env=p.env,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for spec in (ROUTER, FUSED) * 3]
            equal([(process.communicate()[1], process.returncode) for process in running], [(b"", 0)] * 6)
            equal(len(p.entries(p.path / "out")), 1)
            equal([x.name for x in p.path.iterdir()], ["out"])


def test_pack_refuses():
    with Place().no_nvrtc() as p:
        def refused(output, says):
            done = p.run("pack", "--target", "sm_90a", "-o", output, ROUTER, status=1)
            equal(done.out, "")
            contains(done.err, says)
        (p.path / "file").write_text("mine")
        refused("file", "--output file: is in the way and no folder that can be replaced")
        (p.path / "mixed").mkdir()
        (p.path / "mixed" / "notes.txt").write_text("mine")
        refused("mixed", "--output mixed: not replaced, since it has 'notes.txt', which pack did not write")
        (p.path / "empty").mkdir()
        (p.path / "link").symlink_to("empty")
        refused("link", "--output link: is in the way")
        refused("link/", "--output link: is in the way")
        (p.path / "locked").mkdir()
        (p.path / "locked" / ".lock-x").write_text("")
        refused("locked", "it has '.lock-x'")
        (p.path / "linked").mkdir()
        (p.path / "linked" / ("dsv3_router_gemm-" + "0" * 32)).symlink_to("../file")
        refused("linked", "it has 'dsv3_router_gemm-")
        for output in ("", "/", ".", "./", "..", "empty/.."):
            p.usage("pack", "--target", "sm_90a", "-o", output, ROUTER, says=f"--output '{output}': ")
        equal((p.path / "mixed" / "notes.txt").read_text() + (p.path / "file").read_text(), "minemine")
        fault = p.run("pack", "--target", "sm_90a", "-o", "new", ROUTER, status=1)
        contains(fault.out, "failed: SGL_KERNEL_JIT_NVRTC names no usable library")
        equal(fault.err, "sgl-jit: new: not written, since 1 of 1 kernels failed\n")
        equal((p.path / "new").exists(), False)
    with Place().fake_nvrtc() as p:
        done = p.run("pack", "--target", "sm_90a", "-o", "none/new", ROUTER, status=1)
        contains(done.err, "none/new: cannot make a folder beside it: No such file or directory; nothing was changed")
        p.cache.mkdir(0o700)
        done = p.run("pack", "--target", "sm_90a", "-o", p.cache, ROUTER, status=2)
        contains(done.err, "this is the cache folder, which sgl-jit warm fills")
        done = p.run("pack", "--target", "sm_90a", "-o", "big", ROUTER, status=1,
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        contains(done.err, "big.new-", "cannot write: File too large; nothing was changed")
        equal(sorted(x.name for x in p.path.iterdir()), ["cache"])


USER = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
class Spec(ctypes.Structure):
    _fields_ = [("op", ctypes.c_int), ("n", ctypes.c_int64), ("k", ctypes.c_int64), ("dtype", ctypes.c_int)]
why = ctypes.create_string_buffer(600)
status = library.sgl_jit_warm(ctypes.byref(Spec(0, 8, 256, 1)), 0, why, 600) or \\
         library.sgl_jit_warm(ctypes.byref(Spec(1, 16, 256, 2)), 1, why, 600)
if status == 0 and len(sys.argv) > 2:
    class Tensor(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("device_type", ctypes.c_int), ("device", ctypes.c_int32),
                    ("ndim", ctypes.c_int32), ("sizes", ctypes.c_void_p), ("strides", ctypes.c_void_p)]
    keep = []
    def tensor(dtype, rows, columns, words):
        raw = ctypes.create_string_buffer(rows * columns * 4 + 16)
        data = (ctypes.addressof(raw) + 15) // 16 * 16
        sizes, strides = (ctypes.c_int64 * 2)(rows, columns), (ctypes.c_int64 * 2)(columns, 1)
        if words:
            ctypes.memmove(data, (ctypes.c_uint16 * len(words))(*words), 2 * len(words))
        keep.extend((raw, sizes, strides))
        return Tensor(data, dtype, 2, 0, 2, ctypes.addressof(sizes), ctypes.addressof(strides))
    one, two = 0x3f80, 0x4000  # bfloat16
    output, a = tensor(1, 2, 8, None), tensor(2, 2, 256, [one] * 256 + [two] * 256)
    w = tensor(2, 8, 256, [one] * 256 * 8)
    status = library.sgl_jit_dsv3_router_gemm(ctypes.byref(output), ctypes.byref(a), ctypes.byref(w), None, why, 600)
    print(list((ctypes.c_float * 16).from_address(output.data)))
counters = (ctypes.c_uint64 * 14)()
library.sgl_jit_get_counters(ctypes.byref(counters), ctypes.sizeof(counters))
print(status, why.value.decode(), "prebuilt", counters[1], "compiles", counters[4])
"""


def use(place, *args):
    """What a program does whose library lies in place/lib."""
    (place.path / "lib").mkdir(exist_ok=True)
    shutil.copy(BUILD / "lib" / "libsgl_kernel_jit.so", place.path / "lib" / "libsgl_kernel_jit.so.0")
    done = subprocess.run([sys.executable, "-c", USER, place.path / "lib" / "libsgl_kernel_jit.so.0", *args], env=place.env,
                          capture_output=True, text=True)
    equal((done.returncode, done.stderr), (0, ""))
    return done.stdout.splitlines()


def test_packed_kernels_need_no_nvrtc():
    """What the real NVRTC made, moved beside the library, is what the driver gets."""
    with Place().no_nvrtc().gpus() as p:
        contains(use(p)[0], "4 ", "SGL_KERNEL_JIT_NVRTC names no usable library", "prebuilt 0 compiles 0")
        shutil.copytree(packed(), p.path / "lib" / "sgl-kernel-jit-cubins")
        equal(use(p), ["0  prebuilt 2 compiles 0"])
        equal(p.cache.exists() and p.entries() or [], [])
        env = {"LD_LIBRARY_PATH": f"{p.path}/driver:{p.path}/lib"}  # sgl-jit sees the same
        equal([line.split()[-1] for line in p.run("warm", ROUTER, FUSED, env=env).out.splitlines()], ["prebuilt"] * 2)
        contains(p.run("verify", env=env).out, "4 ok, 0 of other versions, 0 bad")
        # The driver refuses a damaged one no more than the library does.
        file = entry_for(p.path / "lib" / "sgl-kernel-jit-cubins", ROUTER, "sm_90a")[0]
        data = bytearray(file.read_bytes())
        data[-100] ^= 1
        file.write_bytes(data)
        contains(use(p)[0], "4 ", "prebuilt 0 compiles 0")
        done = p.run("verify", env=env, status=1)
        contains(done.out, "damaged: the checksum is wrong; make the folder anew with sgl-jit pack", "3 ok, 0 of other versions, 1 bad")


def test_packed_kernels_compute():
    with Place().fake_nvrtc().gpus() as p:
        p.run("pack", "--target", "sm_90a", "-o", "cubins", ROUTER, FUSED)
        (p.path / "lib").mkdir()
        (p.path / "cubins").rename(p.path / "lib" / "sgl-kernel-jit-cubins")
        p.no_nvrtc()
        equal(use(p, "compute"), [str([256.0] * 8 + [512.0] * 8), "0  prebuilt 2 compiles 0"])


# --- list, verify ---


def test_list():
    with Place() as p:
        names = fill(p)
        lib = BUILD / "lib"
        now = time.time()
        middle = entry_for(p.cache, ROUTER, "sm_100a")[0].name
        used, unused = names[0], names[1]
        os.utime(p.cache / used, (now - 3 * 3600 - 60, now - 5 * 86400 - 60))
        os.utime(p.cache / unused, (now - 6 * 86400, now - 2 * 86400 - 60))
        whole = p.listed()
        equal([(f["kind"], f["path"], f["source"], f["used"], f["problem"], f["kernels"]) for f in whole["folders"]],
              [("cache", str(p.cache), "SGL_KERNEL_JIT_CACHE_DIR", True, None, 4),
               ("prebuilt", f"{lib}/sgl-kernel-jit-cubins", "the library's folder", False, None, 0)])
        equal(whole["folders"][0]["bytes"], sum((p.cache / n).stat().st_size for n in names))
        entries = {e["file"]: e for e in whole["entries"]}
        equal(sorted(entries), names)
        e = entries[middle]
        equal([e[k] for k in ("folder", "kernel", "op", "n", "k", "dtype", "target", "pdl", "state", "reason")],
              ["cache", ROUTER, "dsv3_router_gemm", 8, 256, "float32", "sm_100a", "off", "ok", None])
        equal(e["bytes"], (p.cache / e["file"]).stat().st_size)
        iso = lambda t: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(t))
        equal([entries[used][k] for k in ("written", "used")], [iso(now - 5 * 86400 - 60), iso(now - 3 * 3600 - 60)])
        equal([entries[unused][k] for k in ("written", "used")], [iso(now - 2 * 86400 - 60), None])
        rows = [line.split("\t") for line in p.run("list", "--format", "tsv").out.splitlines()]
        equal(rows[0], ["folder", "op", "n", "k", "dtype", "target", "pdl", "bytes", "written", "used", "state", "reason", "path", "file"])
        equal([dict(zip(rows[0], r)) for r in rows[1:]],
              [{k: str("" if v is None else v) for k, v in dict(entries[n], path=p.cache).items() if k != "kernel"} for n in names])
        text = p.run("list").out
        contains(text, f"{p.cache} (SGL_KERNEL_JIT_CACHE_DIR): 4 kernels, ", f"{lib}/sgl-kernel-jit-cubins (the library's folder): not there")
        line = next(line for line in text.splitlines() if used in line)
        contains(line, " ok ", " 5 d ", " 3 h ")
        equal((p.cache / unused).stat().st_atime, now - 6 * 86400)  # looking is no use


def spoil(p):
    """One file of every kind that is wrong; {file: reason}."""
    names = fill(p)
    file = {(k, t): entry_for(p.cache, k, t) for k in (ROUTER, FUSED) for t in ("sm_90a", "sm_100a")}
    key_90, image_90 = file[ROUTER, "sm_90a"][1:]
    key_100 = file[ROUTER, "sm_100a"][1]
    wrong = {}

    def another(number, change):
        """A good entry of its own (for another shape's name), then changed."""
        key = key_90.replace(b"text ", b"text %x" % number)
        name = put(p.cache, key, image_90)
        change(p.cache / name)
        return name

    def flip(f):
        data = bytearray(f.read_bytes())
        data[len(data) // 2] ^= 4
        f.write_bytes(data)

    def link(f):
        f.rename(p.path / "elsewhere")
        f.symlink_to(p.path / "elsewhere")

    def replace(make):
        def change(f):
            f.unlink()
            make(f)
        return change
    wrong[another(1, flip)] = "damaged: the checksum is wrong"
    wrong[another(2, lambda f: os.truncate(f, f.stat().st_size - 1))] = "truncated"
    wrong[another(3, lambda f: f.write_bytes(b""))] = "truncated"
    wrong[another(4, lambda f: f.write_bytes(b"hello, this is no entry"))] = "not an entry of this version's format"
    wrong[another(5, lambda f: f.chmod(0o620))] = "may be written by others"
    wrong[another(6, link)] = "a symbolic link"
    wrong[another(7, replace(os.mkfifo))] = "not a regular file"
    wrong[another(8, replace(os.mkdir))] = "not a regular file"
    renamed = "dsv3_router_gemm-" + "ab" * 16
    (p.cache / another(9, lambda f: None)).rename(p.cache / renamed)
    wrong[renamed] = "the name is not that of its content"
    # Whole files, whose code is not what their key says.
    wrong[put(p.cache, key_100, image_90)] = "the image is code for sm_90, not for sm_100a"
    wrong[put(p.cache, file[FUSED, "sm_90a"][1], image_90)] = "the image has no entry point fused_a_"
    wrong[put(p.cache, file[FUSED, "sm_100a"][1], b"not ELF" * 9)] = "the image is no ELF file"
    if os.geteuid() == 0:
        wrong[another(10, lambda f: os.chown(f, 12345, 12345))] = "belongs to another user"
    other = put(p.cache, key_90.replace(b"abi ", b"abi 9"), image_90)
    strange = put(p.cache, b"abi 1\nkernel another_gemm:1x1:int8\ntarget sm_90a\n", image_90)
    return wrong, [file[ROUTER, "sm_90a"][0].name], [other, strange]


def test_bad_entries():
    with Place() as p:
        wrong, good, others = spoil(p)
        entries = {e["file"]: e for e in p.listed(status=1)["entries"]}
        equal(sorted(entries), sorted([*wrong, *good, *others]))
        for name, reason in wrong.items():
            equal(entries[name]["state"], "bad")
            contains(entries[name]["reason"], reason)
        equal([(entries[n]["state"], entries[n]["reason"]) for n in good], [("ok", None)] * len(good))
        equal([entries[n]["state"] for n in others], ["other"] * 2)
        contains(entries[others[0]]["reason"], "made by a version of the library with other kernels")
        contains(entries[others[1]]["reason"], "names no kernel that this version has")
        equal([entries[others[0]][k] for k in ("kernel", "target")], [ROUTER, "sm_90a"])
        text = p.run("list", status=1).out
        verified = p.run("verify", status=1).out.splitlines()
        for name, reason in wrong.items():
            contains(text, f"bad: {reason}")
            line = next(line for line in verified if name in line)
            contains(line, "bad    ", f"{p.cache}/{name}", reason)
            by_hand = any(r in reason for r in ("symbolic", "regular", "another user"))
            contains(line, "; remove it by hand" if by_hand else "; sgl-jit prune --bad removes it")
        equal(verified[-1], f"1 ok, 2 of other versions, {len(wrong)} bad")
        contains(p.run("info").out, f"advice: {len(wrong)} files in {p.cache} are bad: see sgl-jit verify")
        # And away with them, but for what is not the library's.
        done = p.run("prune", "--bad")
        stay = [n for n, r in wrong.items() if any(x in r for x in ("symbolic", "regular", "another user"))]
        equal(p.entries(), sorted([*stay, *good, *others]))
        equal((p.path / "elsewhere").exists(), True)
        for name in stay:
            contains(done.err, f"{p.cache}/{name}: left alone: {wrong[name]}; remove it by hand")
        contains(done.out, f"{len(wrong) - len(stay)} files removed, ")


def test_verify_every_bit_matters():
    with Place() as p:
        fill(p)
        file, key, image = entry_for(p.cache, ROUTER, "sm_90a")
        data = file.read_bytes()
        for at in (0, 7, 8, 15, 16, 23, 24, 24 + len(key), len(data) - 17, len(data) - 16, len(data) - 1):
            changed = bytearray(data)
            changed[at] ^= 0x10
            file.write_bytes(changed)
            contains(p.run("verify", status=1).out, f"bad    {file}")
        file.write_bytes(data)
        equal(p.run("verify").returncode, 0)


def test_older_compilers_code():
    """NVRTC 12 writes the architecture elsewhere in the flags; seen with 12.4: OS ABI 0x33, flags 0x5a0d5a for sm_90a."""
    with Place() as p:
        fill(p)
        file, key, image = entry_for(p.cache, ROUTER, "sm_90a")
        image = bytearray(image)
        image[7:9] = b"\x33\x07"
        image[48:52] = struct.pack("<I", 0x5a0d5a)
        put(p.cache, key, bytes(image))
        equal(p.run("verify").returncode, 0)
        image[48:52] = struct.pack("<I", 0x500550)
        put(p.cache, key, bytes(image))
        contains(p.run("verify", status=1).out, "the image is code for sm_80, not for sm_90a")
        image[48:52] = struct.pack("<I", 0x5a0d5a)
        image[18:20] = struct.pack("<H", 62)
        put(p.cache, key, bytes(image))
        contains(p.run("verify", status=1).out, "the image is code for another machine (ELF machine 62, CUDA is 190)")


def test_code_for_a_driver_to_compile():
    with Place().gpus(major="9", minor="9").real() as p:  # no NVRTC knows it: sm_90 is compiled in its place
        p.run("warm", "--device", "0", ROUTER)
        equal([(e["target"], e["state"]) for e in p.listed()["entries"]], [("sm_90", "ok")])
        contains(p.run("info").out, "does not know sm_99a (cuda:0) and compiles sm_90 in its place")
        file, key, image = entry_for(p.cache, ROUTER, "sm_90")
        ptx = key.replace(b"target sm_90", b"target compute_90")
        names = re.findall(rb"\.text\.(router_\w+)", image)
        put(p.cache, ptx, b".version 9.0\n" + b"".join(b".entry %s(\n" % n for n in set(names)) + b"\0")
        equal(sorted((e["target"], e["state"]) for e in p.listed()["entries"]), [("compute_90", "ok"), ("sm_90", "ok")])
        put(p.cache, ptx, b".version 9.0\n\0")
        contains(p.run("verify", status=1).out, "the image has no entry point router_")
        put(p.cache, ptx, image)
        contains(p.run("verify", status=1).out, "the image is no PTX")


def test_folders_that_are_not_used():
    with Place() as p:
        fill(p)
        for command in ("list", "verify"):
            p.cache.chmod(0o777)
            done = p.run(command, status=1)
            contains(done.out, f"{p.cache} (SGL_KERNEL_JIT_CACHE_DIR): not used: may be written by others; chmod go-w it")
            p.cache.chmod(0o700)
            done = p.run(command, status=1, env={"SGL_KERNEL_JIT_CACHE_DIR": "x/y"})
            contains(done.out, "none: SGL_KERNEL_JIT_CACHE_DIR is not an absolute path: x/y")
            (p.path / "link").symlink_to(p.cache)
            done = p.run(command, status=1, env={"SGL_KERNEL_JIT_CACHE_DIR": str(p.path / "link")})
            contains(done.out, "not used: is a symbolic link")
            (p.path / "link").unlink()
            done = p.run(command, env={"SGL_KERNEL_JIT_CACHE_DIR": str(p.path / "none")})
            contains(done.out, "(SGL_KERNEL_JIT_CACHE_DIR): not there yet")
            prebuilt = {"SGL_KERNEL_JIT_PREBUILT_DIR": str(packed())}
            contains(p.run(command, env=prebuilt).out, f"prebuilt     {packed()} (SGL_KERNEL_JIT_PREBUILT_DIR): 4 kernels, ")
            if os.geteuid() == 0:
                os.chown(p.cache, 12345, 12345)
                contains(p.run(command, status=1).out, "not used: belongs to another user")
                os.chown(p.cache, 0, 0)


# --- prune ---


def test_prune_by_age():
    with Place() as p:
        names = fill(p)
        now = time.time()
        ages = {names[0]: (10, 50), names[1]: (50, 40), names[2]: (29, 29), names[3]: (-1, -1)}  # days since access, since writing
        for name, (access, write) in ages.items():
            os.utime(p.cache / name, (now - access * 86400, now - write * 86400))
        done = p.run("prune", "--older-than", "30d", "--dry-run")
        equal((done.out.splitlines()[0], len(p.entries())), (f"would remove {names[1]} (not used for long)", 4))
        contains(done.out, "1 file would be removed, ")
        done = p.run("prune", "--older-than", "30d")
        equal(done.out.splitlines()[0], f"removed {names[1]} (not used for long)")
        equal(p.entries(), [names[0], names[2], names[3]])
        p.run("prune", "--older-than", "3w")
        equal(p.entries(), [names[0], names[3]])
        equal(p.run("prune", "--older-than", "9w").out, "0 files removed, 0 bytes freed\n")
        for unit, left in (("20000min", 2), ("300h", 2), ("999999s", 2), ("864000s", 1), ("0s", 1)):
            p.run("prune", "--older-than", unit)
            equal((unit, len(p.entries())), (unit, left))


def test_prune_by_size():
    with Place() as p:
        names = fill(p)
        now = time.time()
        size = {n: (p.cache / n).stat().st_size for n in names}
        newest = [names[i] for i in (2, 0, 3, 1)]  # of use; their writing says the reverse
        for age, name in enumerate(newest):
            os.utime(p.cache / name, (now - age * 3600, now - (9 - age) * 86400))
        p.run("prune", "--max-size", sum(size.values()))
        equal(p.entries(), names)
        p.run("prune", "--max-size", sum(size.values()) - 1)
        equal(p.entries(), sorted(newest[:3]))
        p.run("prune", "--max-size", size[newest[0]] + size[newest[1]])
        equal(p.entries(), sorted(newest[:2]))
        p.run("prune", "--max-size", "1G")
        equal(p.entries(), sorted(newest[:2]))
        done = p.run("prune", "--max-size", "0", "--dry-run")
        equal(([line.split()[2] for line in done.out.splitlines()[:2]], p.entries()), (newest[1::-1], sorted(newest[:2])))
        p.run("prune", "--max-size", "0K")
        equal(p.entries(), [])


def test_prune_leaves_what_is_not_the_librarys():
    with Place() as p:
        names = fill(p)
        (p.path / "precious").write_text("precious")
        for name in ("notes.txt", "dsv3_router_gemm-short", ".hidden", "dsv3_router_gemm-" + "g" * 32):
            (p.cache / name).write_text("mine")
        link = p.cache / ("dsv3_router_gemm-" + "0" * 32)
        link.symlink_to(p.path / "precious")
        (p.cache / ("dsv3_router_gemm-" + "1" * 32)).mkdir()
        (p.cache / ".lock-link").symlink_to(p.path / "precious")
        (p.cache / ".new-link").symlink_to(p.path / "precious")
        old = time.time() - 2 * 3600
        (p.cache / ".new-dead").write_text("half")
        os.utime(p.cache / ".new-dead", (old, old))
        (p.cache / ".new-alive").write_text("half")
        (p.cache / ".lock-free").write_text("")
        (p.cache / ".lock-held").write_text("")
        with open(p.cache / ".lock-held", "r+") as held:
            fcntl.lockf(held, fcntl.LOCK_EX)
            done = p.run("prune", "--all")
        equal(sorted(f.name for f in p.cache.iterdir()),
              sorted(["notes.txt", "dsv3_router_gemm-short", ".hidden", "dsv3_router_gemm-" + "g" * 32, link.name,
                      "dsv3_router_gemm-" + "1" * 32, ".lock-link", ".new-link", ".new-alive", ".lock-held"]))
        equal((p.path / "precious").read_text(), "precious")
        contains(done.out, "removed .new-dead (left behind by a process that died)", "removed .lock-free (an unused lock)", "6 files removed")
        equal([name for name in names if f"removed {name} (all)" not in done.out], [])
        contains(done.err, f"{link}: left alone: a symbolic link; remove it by hand")


def test_prune_where_it_must_not():
    with Place() as p:
        equal(p.run("prune", "--all").out.split(" (")[0].split(), ["cache", str(p.cache)])
        equal(p.cache.exists(), False)
        names = fill(p)
        p.cache.chmod(0o777)
        done = p.run("prune", "--all", status=1)
        contains(done.err, f"the cache folder {p.cache} (SGL_KERNEL_JIT_CACHE_DIR) is not touched: may be written by others; chmod go-w it")
        equal(p.entries(), names)
        p.cache.chmod(0o700)
        (p.path / "link").symlink_to(p.cache)
        done = p.run("prune", "--all", status=1, env={"SGL_KERNEL_JIT_CACHE_DIR": str(p.path / "link")})
        contains(done.err, "is not touched: is a symbolic link")
        done = p.run("prune", "--all", status=1, env={"SGL_KERNEL_JIT_CACHE_DIR": "cache"})
        contains(done.err, "is not touched: SGL_KERNEL_JIT_CACHE_DIR is not an absolute path: cache")
        prebuilt = {"SGL_KERNEL_JIT_PREBUILT_DIR": str(packed())}
        before = p.entries(packed())
        p.run("prune", "--all", env=prebuilt)
        equal((p.entries(), p.entries(packed())), ([], before))


def test_prune_that_fails():
    if os.geteuid() == 0:
        with Place().real() as p:
            fill(p)
            if subprocess.run(["chattr", "+i", p.cache], capture_output=True).returncode == 0:
                done = p.run("prune", "--all", status=1)
                subprocess.run(["chattr", "-i", p.cache], check=True)
                contains(done.err, "cannot be removed: Operation not permitted")
                return
        raise Skip("root can remove from every folder, and chattr does not work here")
    with Place() as p:
        fill(p)
        p.cache.chmod(0o500)
        contains(p.run("prune", "--all", status=1).err, "cannot be removed: Permission denied")
        p.cache.chmod(0o700)


# --- info ---


def info(place, **env):
    text = place.run("info", env=env).out
    return json.loads(place.run("info", "--format", "json", env=env).out), text


def test_info_with_gpus():
    with Place().gpus().real() as p:
        facts, text = info(p)
        equal(facts["version"], re.match(r"sgl-jit +(\S+)", text)[1])
        equal(facts["backend"], "auto")
        equal((facts["driver"]["version"], facts["driver"]["path"], facts["driver"]["problem"]),
              ("13.0", f"{p.path}/driver/libcuda.so.1", None))
        equal(facts["devices"], [{"index": i, "compute_capability": "9.0", "target": "sm_90a", "shared_memory_per_block": 232448,
                                  "supported": True} for i in range(2)])
        contains(text, "cuda:1       compute capability 9.0 (sm_90a), 232448 bytes of shared memory a block")
        found = facts["nvrtc"]
        equal((found["problem"], os.path.basename(found["path"])[:13], found["tried"][-1]["problem"]), (None, "libnvrtc.so.1", None))
        equal(os.path.exists(found["path"]) and os.path.exists(found["builtins"]), True)
        equal(os.path.basename(found["builtins"]), f"libnvrtc-builtins.so.{found['version']}")
        equal(os.path.basename(os.path.realpath(found["builtins"])), f"libnvrtc-builtins.so.{found['builtins_version']}")
        contains(text, f"builtins     {found['builtins_version']}, {found['builtins']}\n")
        equal(found["place"], found["tried"][-1]["place"])
        equal({"sm_80", "sm_90a", "sm_100a"} - set(found["targets"]), set())
        equal([f["kind"] for f in facts["folders"]], ["cache", "prebuilt"])
        equal(facts["environment"]["SGL_KERNEL_JIT_CACHE_DIR"], str(p.cache))
        contains(text, f"SGL_KERNEL_JIT_CACHE_DIR={p.cache}\n")
        equal(facts["advice"], [])
        equal(p.cache.exists(), False)


def test_info_where_everything_is_missing():
    with Place().no_nvrtc() as p:
        facts, text = info(p, HOME="", SGL_KERNEL_JIT_CACHE_DIR="here", SGL_KERNEL_JIT_PREBUILT_DIR="there",
                           SGL_KERNEL_JIT_CACHEDIR="/x", SGL_KERNEL_JIT_BACKEND="gpu",
                           SGL_KERNEL_JIT_MONITOR="loud", SGL_KERNEL_JIT_BATCH_INVARIANT="yes", SGL_KERNEL_JIT_PDL_PREFETCH="")
        equal((facts["driver"]["version"], facts["devices"], facts["nvrtc"]["version"], facts["nvrtc"]["path"]), (None, [], None, None))
        contains(facts["driver"]["problem"], "libcuda.so.1")
        equal(facts["nvrtc"]["tried"], [{"place": "SGL_KERNEL_JIT_NVRTC", "path": "/nowhere/libnvrtc.so.13",
                                         "problem": "not there"}])
        equal([f["path"] for f in facts["folders"]], [None, None])
        advice = "\n".join(facts["advice"])
        contains(advice, "no GPU can be used here", "without NVRTC only", "the cache folder is not used",
                 "SGL_KERNEL_JIT_CACHEDIR is set, but no variable of this version", "SGL_KERNEL_JIT_BACKEND is 'gpu', so every call fails",
                 "SGL_KERNEL_JIT_MONITOR is 'loud', so every compile after the warm-up fails: set it to off, warn or error, or unset it",
                 "SGL_KERNEL_JIT_BATCH_INVARIANT is 'yes', so every call on a GPU fails: set it to 0 or 1, or unset it")
        equal("SGL_KERNEL_JIT_PDL_PREFETCH" in advice, False)
        equal(facts["backend"], "invalid")
        equal([line[8:] for line in text.splitlines() if line.startswith("advice: ")], facts["advice"])
        contains(text, "SGL_KERNEL_JIT_NVRTC: /nowhere/libnvrtc.so.13: not there\n")


def test_info_on_the_search_for_nvrtc():
    with Place() as p:
        facts, _ = info(p)
        places = [t["place"] for t in facts["nvrtc"]["tried"]]
        order = ["SGL_KERNEL_JIT_NVRTC", "loaded already", "beside the CUDA runtime", "by name", "CUDA_HOME", "CUDA_PATH", "/usr/local"]
        equal(sorted(set(places), key=order.index), list(dict.fromkeys(places)))
        equal(facts["nvrtc"]["tried"][0], {"place": "SGL_KERNEL_JIT_NVRTC", "path": None, "problem": "not set"})
        shutil.copy(FAKES / "fake_nvrtc.so", p.path / "libnvrtc.so.12")
        (p.path / "libnvrtc.so.13").write_text("no library")
        facts, text = info(p, LD_LIBRARY_PATH=str(p.path))
        equal((facts["nvrtc"]["path"], facts["nvrtc"]["place"]), (f"{p.path}/libnvrtc.so.12", "by name"))
        equal([t["path"] for t in facts["nvrtc"]["tried"] if t["place"] == "by name"], ["libnvrtc.so.13", "libnvrtc.so.12"])
        contains(text, "by name: libnvrtc.so.12: found")


def test_info_on_cublaslt():
    with Place().no_nvrtc() as p:
        fake = str(FAKES / "fake_cublaslt.so")
        facts, text = info(p, SGL_KERNEL_JIT_CUBLASLT=fake)
        equal(facts["cublaslt"], {"version": "13.1.0", "path": fake, "place": "SGL_KERNEL_JIT_CUBLASLT", "problem": None,
                                  "tried": [{"place": "SGL_KERNEL_JIT_CUBLASLT", "path": fake, "problem": None}]})
        contains(text, f"cublaslt     13.1.0, {fake}\n  tried      SGL_KERNEL_JIT_CUBLASLT: {fake}: found\n")
        facts, text = info(p, SGL_KERNEL_JIT_CUBLASLT="/nowhere/libcublasLt.so.13")
        equal((facts["cublaslt"]["version"], facts["cublaslt"]["path"], facts["cublaslt"]["place"]), (None, None, None))
        contains(facts["cublaslt"]["problem"], "SGL_KERNEL_JIT_CUBLASLT names no usable library: /nowhere/libcublasLt.so.13: ")
        contains(text, "cublaslt     none: SGL_KERNEL_JIT_CUBLASLT names no usable library")
        # the driver's major version comes first, and a damaged file is passed by
        shutil.copy(fake, p.path / "libcublasLt.so.12")
        (p.path / "libcublasLt.so.13").write_text("no library")
        found = info(p, LD_LIBRARY_PATH=str(p.path))[0]["cublaslt"]
        equal((found["path"], found["place"]), (f"{p.path}/libcublasLt.so.12", "by name"))
        equal([t["path"] for t in found["tried"] if t["place"] == "by name"], ["libcublasLt.so.13", "libcublasLt.so.12"])
        variant(p.path / "old.so", "fake_cublaslt", {"version": "110803"})
        problem = info(p, SGL_KERNEL_JIT_CUBLASLT=str(p.path / "old.so"))[0]["cublaslt"]["problem"]
        equal(problem, f"cuBLASLt 11.8.3 ({p.path}/old.so) is too old, 12.0 is needed")


def test_info_finds_cublaslt_in_wheels():
    """Beside the CUDA runtime that a program has loaded: in one folder for CUDA 13, each in its own for CUDA 12."""
    for runtime, library in (("nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/lib/libcublasLt.so.13"),
                             ("nvidia/cuda_runtime/lib/libcudart.so.12", "nvidia/cublas/lib/libcublasLt.so.12")):
        with Place().no_nvrtc() as p:
            for path in (runtime, library):
                (p.path / path).parent.mkdir(parents=True, exist_ok=True)
            compile_c(p.path / runtime, "int nothing;\n")
            shutil.copy(FAKES / "fake_cublaslt.so", p.path / library)
            found = info(p, LD_PRELOAD=str(p.path / runtime))[0]["cublaslt"]
            equal((os.path.realpath(found["path"]), found["place"]), (str(p.path / library), "beside the CUDA runtime"))


def test_info_on_old_and_damaged_compilers():
    with Place() as p:
        p.env["SGL_KERNEL_JIT_NVRTC"] = str(p.path / "libnvrtc.so.12")
        variant(p.path / "libnvrtc.so.12", "fake_nvrtc", {"major": "12", "minor": "99"})
        facts, _ = info(p)
        equal((facts["nvrtc"]["version"], facts["nvrtc"]["builtins"], facts["nvrtc"]["builtins_version"]), ("12.99", None, None))
        contains("\n".join(facts["advice"]), "libnvrtc-builtins.so.12.99 is missing, without which NVRTC compiles nothing")
        variant(p.path / "libnvrtc.so.12", "fake_nvrtc", {"major": "11", "minor": "8"})
        facts, text = info(p)
        equal(facts["nvrtc"]["version"], None)
        contains(text, "none: NVRTC 11.8 is too old, 12.1 is needed")


def test_info_on_the_library():
    with Place().no_nvrtc() as p:
        facts, text = info(p)
        equal(facts["library"]["path"], str(BUILD / "lib" / "libsgl_kernel_jit.so.0"))
        contains(facts["library"]["source"], "beside sgl-jit")
        lib = p.path / "lib"
        lib.mkdir()
        shutil.copy(BUILD / "lib" / "libsgl_kernel_jit.so", lib / "libsgl_kernel_jit.so.0")
        facts, _ = info(p, LD_LIBRARY_PATH=str(lib))
        equal(facts["library"], {"path": f"{lib}/libsgl_kernel_jit.so.0", "version": facts["version"], "source": "found by name"})
        equal(facts["folders"][1]["path"], f"{lib}/sgl-kernel-jit-cubins")
        compile_c(lib / "libsgl_kernel_jit.so.0", 'const char *sgl_jit_version(void);\nconst char *sgl_jit_version(void) { return "9.9.9"; }\n')
        facts, _ = info(p, LD_LIBRARY_PATH=str(lib))
        equal(facts["library"]["version"], "9.9.9")
        contains(facts["advice"][0], "the library is version 9.9.9 and sgl-jit is ")
        (p.path / "bin").mkdir()
        shutil.copy(TOOL, p.path / "bin" / "sgl-jit")
        shutil.rmtree(lib)
        done = subprocess.run([p.path / "bin" / "sgl-jit", "info", "--format", "json"], env=p.env, capture_output=True, text=True)
        facts = json.loads(done.stdout)
        equal((done.returncode, facts["library"]["path"]), (0, None))
        contains(facts["advice"][0], "libsgl_kernel_jit.so.0 was not found: install it beside sgl-jit")


def test_info_knows_every_variable():
    """Those that the library reads; a new one belongs into the list in jit/sgl_jit_info.c."""
    read = set()
    for source in (ROOT / "jit").glob("*.c"):
        if not source.name.startswith("sgl_jit"):
            read |= set(re.findall(r'"((?:SGL_KERNEL_JIT|CUDA|XDG|TRTLLM|TORCH)_[A-Z_]+|HOME)"', source.read_text()))
    equal({"SGL_KERNEL_JIT_NVRTC", "CUDA_HOME", "HOME"} - read, set())
    with Place().no_nvrtc() as p:
        facts, text = info(p, **{name: "/x" for name in read})
        equal(sorted(read - set(facts["environment"])), [])
        equal([line for line in facts["advice"] if "no variable of this version" in line], [])


def test_strange_bytes_in_names():
    with Place().no_nvrtc() as p:
        folder = os.fsencode(p.path) + b"/a\nb\xff\x1b[31m\xc3\xa9"
        os.mkdir(folder, 0o700)
        env = dict(p.env)
        env = {os.fsencode(k): os.fsencode(v) for k, v in env.items()}
        env[b"SGL_KERNEL_JIT_CACHE_DIR"] = folder
        for command in (["info"], ["list"], ["verify"]):
            done = subprocess.run([TOOL, *command], env=env, capture_output=True)
            contains(done.stdout, b"/a\\x0ab\xff\\x1b[31m\xc3\xa9 (")
        for command in ("info", "list"):
            facts = json.loads(subprocess.run([TOOL, command, "--format", "json"], env=env, capture_output=True).stdout)
            equal(facts["folders"][0]["path"], f"{p.path}/a\nb\\xff\x1b[31m\\xc3\\xa9")


def test_lock_file_that_was_removed():
    """Two processes that compile, and prune in between: the entry is right, and no lock file is used that has no name."""
    with Place().gpus().fake_nvrtc() as p:
        running = [subprocess.Popen([TOOL, "warm", ROUTER, FUSED], env=p.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for _ in range(4)]
        for _ in range(20):
            p.run("prune", "--older-than", "1h")
        outputs = [process.communicate() for process in running]
        equal([(process.returncode, err) for process, (_, err) in zip(running, outputs)], [(0, b"")] * 4)
        equal(len(p.entries()), 2)
        compiled = sum(out.count(b"compiled in") for out, _ in outputs)
        equal(compiled, 2)


main(globals())
