#!/usr/bin/env python3
"""Shadow comparison on CUDA tensors: against the reference on real streams, in a capture, with a tolerance that nothing meets and
its replay, and against the old kernel of a real wheel. Each part is a process of its own, whose policy comes from the environment.

SGL_TEST_KERNEL_WHEELS: as in test_python.py; the first folder whose wheel still has dsv3_fused_a_gemm is used."""
import ctypes, json, os, pathlib, subprocess, sys, tempfile, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from suite import Skip, cuda_torch, main

BUILD = pathlib.Path(os.environ["BUILD_DIR"]).resolve()
ROUTER, FUSED_A = "dsv3_router_gemm", "dsv3_fused_a_gemm"
torch = cuda_torch()


# --- in the child ----------------------------------------------------------------------------------------------------


def load():
    """The shim, with the supported operators."""
    compat = ctypes.CDLL(str(BUILD / "lib" / "libsgl_kernel_compat.so"))
    message = ctypes.create_string_buffer(1000)
    assert compat.sgl_compat_register_jit_ops(message, len(message)) == 0, message.value
    return compat


def random(*sizes):
    return torch.randn(*sizes, device="cuda").bfloat16()


def router(tokens, experts=256, dtype=torch.float32):
    a, w, output = random(tokens, 7168), random(experts, 7168), torch.full((tokens, experts), float("nan"), device="cuda", dtype=dtype)
    torch.ops.sgl_kernel_jit.dsv3_router_gemm(output, a, w)
    return output, a.double() @ w.double().t()


def fused_a(tokens):
    a, w, output = random(tokens, 7168), random(2112, 7168), torch.full((tokens, 2112), float("nan"), device="cuda", dtype=torch.bfloat16)
    torch.ops.sgl_kernel_jit.dsv3_fused_a_gemm(output, a, w.t())
    return output, a.double() @ w.double().t()


def assert_close(output, want):
    assert ((output.double() - want).norm() / want.norm()).item() < 2e-3


def in_streams():
    load()
    streams = [torch.cuda.Stream() for _ in range(2)]
    results = []
    for tokens in (1, 2, 8, 16, 17):
        for stream in streams:
            with torch.cuda.stream(stream):
                results.append(router(tokens))
                results.append(router(tokens, 384, torch.bfloat16))
    with torch.cuda.stream(streams[0]):
        results += [fused_a(1), fused_a(16)]
    torch.cuda.synchronize()
    for output, want in results:
        assert_close(output, want)


def in_capture():
    load()
    a, w, output = random(4, 7168), random(256, 7168), torch.zeros(4, 256, device="cuda")
    call = lambda: torch.ops.sgl_kernel_jit.dsv3_router_gemm(output, a, w)
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    for _ in range(3):
        a.copy_(random(4, 7168))
        graph.replay()
        torch.cuda.synchronize()
        assert_close(output, a.double() @ w.double().t())
    call()


def in_mismatch():
    load()
    output, want = router(16)
    assert_close(output, want)


def in_returns_other():
    """The reference's output is the exact one, rounded once."""
    load()
    output, want = fused_a(3)
    assert (output == want.bfloat16()).double().mean().item() > 0.999


def in_wheel():
    """An old wheel is in the process: its own operator is the other side, also for many calls of a serving process."""
    sys.path.insert(0, os.environ["KERNEL_WHEEL"])
    import sgl_kernel

    load()
    for tokens in range(1, 17):
        assert_close(*fused_a(tokens))
    w, output = random(2112, 7168), torch.zeros(8, 2112, device="cuda", dtype=torch.bfloat16)
    activations = [random(8, 7168) for _ in range(50)]
    torch.cuda.synchronize()
    start = time.perf_counter()
    for a in activations:
        torch.ops.sgl_kernel_jit.dsv3_fused_a_gemm(output, a, w.t())
    torch.cuda.synchronize()
    print(f"  sglang-kernel {sgl_kernel.__version__}: {(time.perf_counter() - start) / 50 * 1e3:.2f} ms a compared call")


# --- here ------------------------------------------------------------------------------------------------------------


def run(part, policy, **environment):
    """Runs a part in a child; returns its folder of files, its stderr, and shadow's counts by kernel."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sgl-shadow-"))
    env = {k: v for k, v in os.environ.items() if not k.startswith("SGL_KERNEL_")}
    env.update(SGL_KERNEL_COMPAT_POLICY=policy, SGL_KERNEL_COMPAT_STATS=str(folder), SGL_KERNEL_COMPAT_SHADOW_DIR=str(folder),
               SGL_KERNEL_JIT_CACHE_DIR=os.path.join(tempfile.gettempdir(), "sgl-shadow-cache"), **environment)
    done = subprocess.run([sys.executable, "-W", "ignore", __file__, part.__name__], capture_output=True, text=True, env=env, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout, end="")
    lines = [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    counts = {line["shadow"]: {k: v for k, v in line.items() if k != "shadow" and v} for line in lines if "shadow" in line}
    return folder, done.stderr, counts


def equal(have, want):
    assert have == want, f"\n  have {have}\n  want {want}"


def test_streams():
    _, errors, counts = run(in_streams, "shadow * first=1000")
    equal(counts, {ROUTER: {"calls": 20, "matches": 20}, FUSED_A: {"calls": 2, "matches": 2}, **{k: v for k, v in counts.items() if k == "bmm_fp8"}})
    assert "differs" not in errors, errors


def test_capture():
    _, errors, counts = run(in_capture, f"shadow {ROUTER} first=1000")
    equal(counts, {ROUTER: {"calls": 3, "matches": 2, "ignored": 1}})


def test_mismatch_and_replay():
    folder, errors, counts = run(in_mismatch, f"shadow {ROUTER} first=1 tolerance=1e-12")
    equal(counts, {ROUTER: {"calls": 1, "mismatches": 1}})
    assert "differs from the reference's by" in errors and "saved in" in errors, errors
    tool = BUILD / "bin" / "sgl-compat"
    files = list(folder.glob("*.shadow"))
    equal(len(files), 1)
    done = subprocess.run([tool, "replay", "--json", *files], capture_output=True, text=True)
    if done.returncode == 127 or "cannot open shared object file" in done.stderr:
        raise Skip(f"sgl-compat does not start here: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    print(f"  replayed on this device: {done.stdout.strip()}")
    equal(done.returncode, 1)  # nothing meets that tolerance
    assert 0 < result["kernel_now"] < 2e-7 and result["kernel_now"] == result["kernel_saved"], result


def test_returns_other():
    _, _, counts = run(in_returns_other, f"shadow {FUSED_A} first=1 return=other")
    equal(counts, {FUSED_A: {"calls": 1, "matches": 1}})


def test_real_wheel():
    wheels = [pathlib.Path(path).resolve() for path in os.environ.get("SGL_TEST_KERNEL_WHEELS", "").split(":") if path]
    wheels = [path for path in wheels if (path / "sgl_kernel").is_dir() and path.name < "0.4.6"]
    if not wheels:
        raise Skip("SGL_TEST_KERNEL_WHEELS names none that has the old kernel")
    # A million outputs that two kernels round to 16 bits: a few of them differ in the last one.
    _, errors, counts = run(in_wheel, f"shadow {FUSED_A} first=1000 tolerance=1e-9", KERNEL_WHEEL=str(wheels[0]))
    print(f"  with a tolerance of 1e-9: {counts}")
    n = counts[FUSED_A]
    assert n["calls"] == n.get("matches", 0) + n["mismatches"] == 66, counts
    assert "differs from the old kernel's by" in errors, errors
    _, errors, counts = run(in_wheel, f"shadow {FUSED_A} first=1000", KERNEL_WHEEL=str(wheels[0]))
    equal(counts, {FUSED_A: {"calls": 66, "matches": 66}})


if len(sys.argv) > 1:
    torch.manual_seed(11)
    globals()[sys.argv[1]]()
else:
    main(globals())
