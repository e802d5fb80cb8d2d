#!/usr/bin/env python3
"""Host cost of torch.ops.sgl_kernel.dsv3_router_gemm from Python, against operators registered from C++, on the real torch
(CPU) that tests/shim/install_torch.sh unpacks.

usage: bench_python.py BUILD_DIR

On the CPU there is no launch. The 0-token calls show the overhead alone. In the others the reference backend computes 8 values of
256 products each, which takes about as long as the launch of a kernel does: these stand for "the same launch". On a GPU,
tests/gpu/bench_host.py measures real ones.

The torch lies in $SGL_TEST_TORCH, or in BUILD_DIR/torch. Exit status 1 when the must is missed; without a torch nothing is
measured, and the last line says so."""
import os, pathlib, subprocess, sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def outside(build):
    torch = pathlib.Path(os.environ.get("SGL_TEST_TORCH") or build / "torch")
    done = subprocess.run(["sh", str(ROOT / "tests/shim/install_torch.sh"), str(torch)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(f"\nFrom Python: not measured, no torch here: {done.stdout.strip()}")
        return 0
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SGL_KERNEL_")}
    environment["SGL_KERNEL_JIT_BACKEND"] = "reference"
    return subprocess.run([str(torch / "python"), str(HERE / "bench_python.py"), str(build), str(torch)], env=environment).returncode


def inside(build, folder):
    import torch

    sys.dont_write_bytecode = True  # nothing beside the sources
    sys.path.insert(0, str(HERE))
    import operators

    lib, target = build / "lib", build / "tests/bench/operators.so"
    operators.compile(HERE / "operators.cc", target, [folder / "include"], [folder / "lib"], ROOT / "jit/include", lib)
    operators.load(str(lib), str(target))
    ours, cxx = torch.ops.sgl_kernel.dsv3_router_gemm, torch.ops.sgl_bench.router

    def operands(tokens, n, k):
        return torch.zeros(tokens, n), torch.zeros(tokens, k, dtype=torch.bfloat16), torch.zeros(n, k, dtype=torch.bfloat16)

    rounds, calls = 600, 200
    print(f"\nFrom Python, torch {torch.__version__}, reference backend: ns a call, median [tenths 1 .. 9] of {rounds} rounds of {calls} calls")
    none, some = operands(0, 256, 7168), operands(1, 8, 256)
    idle = operators.measure({"ours": (ours, none), "cxx": (cxx, none), "empty_c": (torch.ops.sgl_bench.empty_c, none),
                              "empty_cxx": (torch.ops.sgl_bench.empty_cxx, none)}, rounds, calls)
    work = operators.measure({"ours": (ours, some), "cxx": (cxx, some)}, rounds, calls)
    operators.row("an operator that does nothing, registered from C++", idle["empty_cxx"])
    operators.row("an operator that does nothing, registered by torch's C ABI", idle["empty_c"])
    operators.row("0 tokens: registered from C++", idle["cxx"])
    operators.row("0 tokens: torch.ops.sgl_kernel.dsv3_router_gemm", idle["ours"])
    operators.row("1 token, 8 x 256: registered from C++", work["cxx"])
    operators.row("1 token, 8 x 256: torch.ops.sgl_kernel.dsv3_router_gemm", work["ours"])
    print(f"ratio without any work: {operators.ratio(idle, 'ours', 'cxx'):.3f}; of the empty ones: "
          f"{operators.ratio(idle, 'empty_c', 'empty_cxx'):.3f}")
    return operators.verdict("with work in the place of a launch", operators.ratio(work, "ours", "cxx"))


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    return inside(build, pathlib.Path(sys.argv[2])) if len(sys.argv) > 2 else outside(build)


sys.exit(main())
