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


def merge_state():
    for tokens, heads, dim in ((1, 16, 128), (64, 16, 128), (1024, 16, 128), (8192, 16, 128), (1024, 128, 512)):
        def make(tokens=tokens, heads=heads, dim=dim):
            v_a, v_b = rand(tokens, heads, dim), rand(tokens, heads, dim)
            s_a, s_b = rand(tokens, heads, dtype=torch.float32), rand(tokens, heads, dtype=torch.float32)
            v, s = torch.empty_like(v_a), torch.empty_like(s_a)

            def expression():
                total = torch.logaddexp2(s_a, s_b)
                return v_a * torch.exp2(s_a - total)[..., None] + v_b * torch.exp2(s_b - total)[..., None], total
            return lambda: jit.merge_state(v_a, s_a, v_b, s_b, v, s), expression
        yield f"{tokens} x {heads} x {dim}", tokens * heads * (dim * 6 + 12), make


def hadamard_transform():
    for rows, columns in ((1, 7168), (64, 128), (8192, 128), (1024, 1024), (1024, 4096), (1024, 8192), (256, 32768)):
        def make(rows=rows, columns=columns):
            size = 1 << (columns - 1).bit_length()
            h = torch.ones(1, 1, device="cuda", dtype=BF16)
            while len(h) < size:
                h = torch.cat((torch.cat((h, h), 1), torch.cat((h, -h), 1)))
            h = (h[:columns, :columns] * columns**-0.5).contiguous()
            x = rand(rows, columns)
            return lambda: jit.hadamard_transform(x, columns**-0.5), lambda: x @ h
        yield f"{rows} x {columns}", rows * columns * 4, make


def segment_packbits():
    for segments, length in ((1, 4096), (32, 4096), (256, 8192), (16, 1 << 20)):
        def make(segments=segments, length=length):
            x = torch.rand(segments * length, device="cuda") < 0.5
            starts = torch.arange(segments + 1, dtype=torch.int32, device="cuda") * length
            places, y = starts // 8, torch.empty(segments * length // 8, dtype=torch.uint8, device="cuda")
            weights = 2 ** torch.arange(8, device="cuda", dtype=torch.uint8)

            def expression():  # what it can be where all segments are whole bytes
                torch.sum(x.view(-1, 8) * weights, 1, dtype=torch.uint8, out=y)
            return lambda: jit.segment_packbits(x, starts, places, y, segments), expression
        yield f"{segments} x {length}", segments * length * 9 // 8, make


def set_kv_buffer_kernel():
    for tokens, heads, dim in ((1, 8, 128), (64, 8, 128), (1024, 8, 128), (8192, 8, 128), (8192, 1, 576)):
        def make(tokens=tokens, heads=heads, dim=dim):
            k, v = rand(tokens, heads, dim), rand(tokens, heads, dim)
            k_cache, v_cache = (torch.zeros(2 * tokens, heads, dim, dtype=BF16, device="cuda") for _ in range(2))
            loc = torch.randperm(2 * tokens, device="cuda")[:tokens]

            def expression():
                k_cache[loc] = k
                v_cache[loc] = v
            return lambda: jit.set_kv_buffer_kernel(k_cache, v_cache, loc, k, v), expression
        yield f"{tokens} x {heads} x {dim}", tokens * heads * dim * 8, make


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


ALL = ("downcast_fp8", "hadamard_transform", "merge_state", "segment_packbits", "set_kv_buffer_kernel", "sgl_per_tensor_quant_fp8")
if __name__ == "__main__":
    if jit is None:
        sys.exit("no wheel: make wheel")
    sys.exit(1 if main(sys.argv[1:] or ALL) else 0)
