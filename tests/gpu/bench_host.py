#!/usr/bin/env python3
"""Host cost of the shim's operators from Python with real launches, against operators registered from C++ that do the same
(tests/bench/operators.cc, compiled here with g++ against the installed torch).

usage: bench_host.py BUILD_DIR

A call is timed until it returns: dispatch, checks and launch, not the kernel. Both sides take turns in batches, with the stream
synchronised in between, so that its queue never fills and nothing is waited for. Exit status 1 when a must is missed, 2 when
nothing could be measured."""
import os, pathlib, statistics, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ROUNDS, CALLS = 200, 100
# operator, registered from C++ as, tokens, n, k, dtype of the output
CASES = (("dsv3_router_gemm", "router", 1, 256, 7168, "float32"), ("dsv3_router_gemm", "router", 16, 384, 7168, "bfloat16"),
         ("dsv3_fused_a_gemm", "fused_a", 1, 2112, 7168, "bfloat16"), ("dsv3_fused_a_gemm", "fused_a", 16, 2112, 7168, "bfloat16"))


def fail(reason):
    print(f"bench_host: nothing measured: {reason}")
    sys.exit(2)


def compiled(operators, torch, lib, folder):
    """With the headers, the libraries and the std::string of the torch that runs this."""
    from torch.utils import cpp_extension

    includes = [p for p in cpp_extension.include_paths() if os.path.exists(os.path.join(p, "ATen"))]
    if not includes:
        fail(f"torch {torch.__version__} has no headers")
    target = os.path.join(folder, "operators.so")
    operators.compile(ROOT / "tests/bench/operators.cc", target, includes, [os.path.join(os.path.dirname(torch.__file__), "lib")],
                      ROOT / "jit/include", lib, [f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"])
    return target


def measure(operators, torch, device, synchronize):
    """Prints the rows; returns the largest ratio."""
    worst = 0.0
    empty = [torch.empty(1, 8, device=device) for _ in range(3)]
    times = operators.measure({name: (getattr(torch.ops.sgl_bench, name), empty) for name in ("empty_c", "empty_cxx")}, ROUNDS, CALLS, synchronize)
    operators.row("an operator that does nothing, registered from C++", times["empty_cxx"])
    operators.row("an operator that does nothing, registered by torch's C ABI", times["empty_c"])
    for name, twin, tokens, n, k, dtype in CASES:
        a = torch.randn(tokens, k, device=device).bfloat16()
        w = torch.randn(n, k, device=device).bfloat16()
        output = [torch.zeros(tokens, n, dtype=getattr(torch, dtype), device=device) for _ in range(2)]
        b = w.t() if twin == "fused_a" else w
        sides = {"cxx": (getattr(torch.ops.sgl_bench, twin), (output[0], a, b)), "ours": (getattr(torch.ops.sgl_kernel, name), (output[1], a, b))}
        times = operators.measure(sides, ROUNDS, CALLS, synchronize)
        if not torch.equal(*output) or not output[0].any():
            fail(f"{name}: the two sides computed different values, or nothing")
        what = f"{name}, {tokens} x {n} x {k}, {dtype}"
        operators.row(f"{what}: from C++", times["cxx"])
        operators.row(f"{what}: ours", times["ours"])
        worst = max(worst, operators.ratio(times, "ours", "cxx"))
    return worst


def main():
    if len(sys.argv) != 2:
        fail("usage: bench_host.py BUILD_DIR")
    for name in [n for n in os.environ if n.startswith("SGL_KERNEL_")]:
        del os.environ[name]
    try:
        import torch
    except ImportError as e:
        fail(f"no torch: {e}")
    if not torch.cuda.is_available():
        fail(f"torch {torch.__version__} sees no GPU")
    sys.dont_write_bytecode = True  # nothing beside the sources
    sys.path.insert(0, str(ROOT / "tests/bench"))
    import operators

    lib = str(pathlib.Path(sys.argv[1]).resolve() / "lib")
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        library = operators.load(lib, compiled(operators, torch, lib, folder))
    print(f"operators.cc compiled in {time.monotonic() - start:.0f} s")
    print(f"Host time of a call, launch included, torch {torch.__version__}, {torch.cuda.get_device_name()}: ns, median [tenths 1 .. 9] of "
          f"{ROUNDS} rounds of {CALLS} calls")
    worst = measure(operators, torch, "cuda", torch.cuda.synchronize)
    query = statistics.median(library.sgl_bench_context_query(100000) for _ in range(9))
    operators.row("part of each: the driver is asked for the current context", [query])
    return operators.verdict("same launch", worst)


if __name__ == "__main__":
    sys.exit(main())
