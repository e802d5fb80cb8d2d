#!/usr/bin/env python3
"""Times the small operators against what their callers would write with torch instead, side by side in one run.

A side is captured in a CUDA graph of CALLS calls, which take turns among so many sets of tensors that the second-level cache
does not hold them, and the graphs are replayed in turns; the time is the median over the replays, of one call. GB/s: what an
operator has to read and write, by its time.

usage: BUILD_DIR=build python3 tests/gpu/bench_native.py [NAME...]"""
import os, pathlib, statistics, sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1])]
import native_package
from suite import cuda_torch

torch = cuda_torch()
jit = native_package.load(os.environ.get("BUILD_DIR", "build"))
CALLS, ROUNDS, COLD_BYTES, MOST_SETS = 20, 15, 200 << 20, 16
BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn


def rand(*shape, dtype=BF16):
    return torch.randn(shape, device="cuda").to(dtype)


# Each gives (label, bytes, make); make gives (ours, torch's), two functions without arguments on tensors of their own.


def downcast_fp8():
    for tokens, heads, dim in ((1, 8, 128), (64, 8, 128), (1024, 8, 128), (8192, 8, 128), (8192, 1, 576)):
        def make(tokens=tokens, heads=heads, dim=dim):
            k, v = rand(tokens, heads, dim), rand(tokens, heads, dim)
            caches = [torch.zeros(2 * tokens, heads, dim, dtype=torch.uint8, device="cuda") for _ in range(2)]
            scales = torch.full((1,), 1.5, device="cuda"), torch.full((1,), 0.75, device="cuda")
            loc = torch.randperm(2 * tokens, device="cuda")[:tokens]

            def expression():
                for x, cache, scale in zip((k, v), caches, scales):
                    cache[loc] = (x / scale.to(x.dtype)).clamp(-448, 448).to(FP8).view(torch.uint8)
            return lambda: jit.downcast_fp8(k, v, *caches, *scales, loc), expression
        yield f"{tokens} x {heads} x {dim}", tokens * heads * dim * 6, make


def sgl_per_tensor_quant_fp8():
    for rows, columns in ((1, 7168), (64, 7168), (1024, 7168), (8192, 7168), (16384, 16384)):
        for is_static in (False, True):
            def make(rows=rows, columns=columns, is_static=is_static):
                x, output, scale = rand(rows, columns), torch.empty(rows, columns, dtype=FP8, device="cuda"), torch.full((1,), 0.01, device="cuda")

                def ours():
                    if not is_static:
                        scale.zero_()
                    jit.sgl_per_tensor_quant_fp8(x, output, scale, is_static)

                def expression():
                    s = scale if is_static else x.abs().max().float() / 448
                    output.copy_((x.float() / s).clamp(-448, 448).to(FP8))
                return ours, expression
            yield f"{rows} x {columns} {'static' if is_static else 'dynamic'}", rows * columns * (3 if is_static else 5), make


def graph_of(functions):
    """A graph that calls them in turns, CALLS calls in all."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for f in functions:
            f()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(CALLS):
            functions[i % len(functions)]()
    return graph


def replay_us(graph):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / CALLS


def main(names):
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; microseconds of a call")
    print(f"{'operator':26}{'shape':24}{'ours':>9}{'torch':>9}{'ratio':>7}{'GB/s':>7}")
    slower = 0
    for name in names:
        for label, size, make in globals()[name]():
            sides = list(zip(*(make() for _ in range(max(1, min(MOST_SETS, COLD_BYTES // size))))))
            graphs = [graph_of(side) for side in sides]
            times = [[], []]
            for _ in range(ROUNDS):
                for graph, list_of in zip(graphs, times):
                    list_of.append(replay_us(graph))
            ours, theirs = (statistics.median(t[2:]) for t in times)
            slower += ours > theirs
            print(f"{name:26}{label:24}{ours:9.2f}{theirs:9.2f}{theirs / ours:7.2f}{size / ours / 1e3:7.0f}", flush=True)
            del graphs, sides
            torch.cuda.empty_cache()
    return slower


ALL = ("downcast_fp8", "sgl_per_tensor_quant_fp8")
if __name__ == "__main__":
    if jit is None:
        sys.exit("no wheel: make wheel")
    sys.exit(1 if main(sys.argv[1:] or ALL) else 0)
