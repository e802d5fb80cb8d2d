#!/usr/bin/env python3
"""Time our kernels, cuBLAS and the old AOT kernels in one run on one GPU.

Measures, in microseconds per call:
  kernel  how long the kernel itself runs, by the CUDA profiler, PDL off; the median over single launches. All kernels
          of a cuBLAS call are added up.
  graph   a CUDA graph of one launch per weight set, divided by the launches; the median of 30 replays.
cold: many weight sets in turn, more than the L2 holds (60 for the router, 12 for fused A). warm: one set again and
again. Outputs alternate among four; the activations stay. The sides take turns, so that clocks treat them alike. Graphs come
first: the profiler stays in the process once it was used. Every side is compared with a float64 product before it is
timed, and once more after the first replay of each cold graph.

Needs torch 2.11 or newer with CUDA, and build/lib/libsgl_kernel_jit.so. The old kernels come from a library that is not
part of this project: --aot FILE, with the C functions
  void aot_set_pdl(int on)
  int aot_router(void *output, void *a, void *w, int tokens, int experts, int output_is_f32, void *stream)
  int aot_fused_a(void *output, void *a, void *w, int tokens, void *stream)
which return 0 or an error, for K = 7168, 256 or 384 experts, 2112 outputs. Without it that column says "not built".

Exit status: 0 all musts met; 1 a must missed, a wrong result or a failed measurement; 2 cannot run here.
"""
import argparse, ctypes, datetime, math, os, pathlib, subprocess, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench_report as report

ROOT = pathlib.Path(__file__).resolve().parents[2]
K = 7168
MAX_TOKENS = 64
TOKENS = (1, 2, 4, 8, 9, 12, 16, 17, 24, 32, 48, 64)
QUICK_TOKENS = (1, 8, 16)
SETS = {"router": 60, "fused_a": 12}
ALTERNATING = 4  # outputs
KERNEL_ROUNDS = 3  # the sides take turns this often
COLD_CALLS, COLD_DROPPED = 22, 2  # of each turn, with other weights each; the first ones miss the activations in the cache
WARM_CALLS, WARM_DROPPED = 15, 3
WARM_UP_TURNS = 6
GRAPH_ROUNDS, GRAPH_TIMED = 6, 5  # 30 replays; each turn starts with one more that is not timed


class Unavailable(Exception):
    pass


# --- the GPU ---------------------------------------------------------------------------------------------------------


class Card:
    """All that needs torch and a GPU. The tests put another class in its place."""

    device_type = 2  # SGL_JIT_DEVICE_CUDA

    def __init__(self):
        try:
            import torch
        except ImportError as e:
            raise Unavailable(f"no torch for {sys.executable}: {e}")
        if not torch.cuda.is_available():
            raise Unavailable("torch finds no CUDA device")
        self.torch = torch
        # What torch itself does for a profiler beside CUDA graphs: once in the process, CUPTI stays as it is.
        os.environ.update(TEARDOWN_CUPTI="0", DISABLE_CUPTI_LAZY_REINIT="1")
        self.stream = ctypes.c_void_p(0)  # what the sides launch on
        self.capture_stream = torch.cuda.Stream()
        self.mark_tensor = torch.zeros(8, device="cuda")
        torch.manual_seed(5)

    def facts(self):
        torch = self.torch
        facts = {"gpu": torch.cuda.get_device_name(0), "torch": torch.__version__, "cuda": torch.version.cuda}
        asked = "driver_version,clocks.current.sm,clocks.max.sm,clocks.current.memory"
        try:
            answer = subprocess.run(["nvidia-smi", "-i", "0", f"--query-gpu={asked}", "--format=csv,noheader"], capture_output=True, text=True, timeout=20)
            facts["driver"], *clocks = [part.strip() for part in answer.stdout.strip().split(",")]
            facts["clocks"] = "SM {} of {}, memory {}".format(*clocks)
        except (OSError, subprocess.TimeoutExpired, ValueError, IndexError):
            facts.setdefault("driver", "unknown")
        return facts

    def random(self, *sizes):
        return self.torch.randn(*sizes, device="cuda", dtype=self.torch.bfloat16)

    def empty(self, dtype, *sizes):
        return self.torch.empty(*sizes, device="cuda", dtype=self.torch.float32 if dtype == "f32" else self.torch.bfloat16)

    def product(self, a, w):
        return a.double() @ w.double().t()

    def address(self, tensor):
        return tensor.data_ptr()

    def poison(self, tensor):
        tensor.fill_(math.nan)

    def error(self, output, exact):
        """Norm of the difference over the norm of the exact result; the same for the exact result rounded to the
        output's type."""
        norm = exact.norm()
        return ((output.double() - exact).norm() / norm).item(), ((exact.to(output.dtype).double() - exact).norm() / norm).item()

    def cublas(self, output, a, w):
        torch, wt = self.torch, w.t()
        if output.dtype == torch.bfloat16:
            return lambda: torch.mm(a, wt, out=output)
        return lambda: torch.mm(a, wt, out_dtype=torch.float32, out=output)

    def synchronize(self):
        self.torch.cuda.synchronize()

    def capture(self, calls):
        graph = self.torch.cuda.CUDAGraph()
        self.synchronize()
        with self.torch.cuda.stream(self.capture_stream):  # torch.cuda.graph() would collect garbage each time
            self.stream.value = self.capture_stream.cuda_stream
            try:
                calls[0]()  # what a first call on this stream allocates belongs to no graph
                self.synchronize()
                graph.capture_begin()
                try:
                    for call in calls:
                        call()
                finally:
                    graph.capture_end()
            finally:
                self.stream.value = 0
        return graph

    def replay(self, graph):
        graph.replay()

    def timed_replay(self, graph):
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        return start, end

    def elapsed_us(self, timed):
        return timed[0].elapsed_time(timed[1]) * 1e3

    def mark(self):
        self.mark_tensor.tanh_()

    @staticmethod
    def is_mark(name):
        return "tanh" in name

    def profile(self, run):
        """(name, start, us) of all that run() makes the device do."""
        profiler = self.torch.profiler
        with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as p:
            run()
            self.synchronize()
        events = []
        for e in p.profiler.kineto_results.events():
            if e.device_type() == self.torch.autograd.DeviceType.CUDA and " Sync" not in e.name() and "Stream Wait" not in e.name():
                events.append((e.name(), e.start_ns(), e.duration_ns() / 1e3))
        return events


# --- the sides -------------------------------------------------------------------------------------------------------


class Data:
    """The tensors of one shape. Call number i uses weight set i and output i modulo ALTERNATING. The
    activations are the same in all: in use the kernel before has just written them, into the second-level cache."""

    def __init__(self, card, op, n, k):
        self.op, self.n, self.k, self.sets = op, n, k, SETS[op]
        self.weights = [card.random(n, k) for _ in range(self.sets)]
        self.activations = card.random(MAX_TOKENS, k)
        self.outputs = {dtype: [card.empty(dtype, MAX_TOKENS, n) for _ in range(ALTERNATING)] for dtype in ("f32", "bf16")}
        self.exact = {i: card.product(self.activations, self.weights[i]) for i in (0, self.sets - 1)}

    def of(self, i, tokens, dtype):
        """(output, activations, weights) of a call."""
        return self.outputs[dtype][i % ALTERNATING][:tokens], self.activations[:tokens], self.weights[i % self.sets]


class Tensor(ctypes.Structure):
    """sgl_jit_tensor"""
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("device_type", ctypes.c_int), ("device_index", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("sizes", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64))]


def tensor(address, device_type, dtype, sizes, strides):
    pair = ctypes.c_int64 * 2
    return Tensor(address, {"f32": 1, "bf16": 2}[dtype], device_type, 0, 2, pair(*sizes), pair(*strides))


class Own:
    name = "own"

    def __init__(self, card, path):
        self.card = card
        try:
            self.library = ctypes.CDLL(str(path))
        except OSError as e:
            raise Unavailable(f"{path}: {e}; `make` builds it")
        self.message = ctypes.create_string_buffer(512)
        self.missing = [s for s in ("sgl_jit_set_pdl", "sgl_jit_set_batch_invariant") if not hasattr(self.library, s)]
        self.modes = ("default",) if "sgl_jit_set_batch_invariant" in self.missing else ("default", "invariant")
        self.pdl = ("off",) if "sgl_jit_set_pdl" in self.missing else ("off", "on")

    def check(self, status):
        if status:
            raise RuntimeError(f"status {status}: {self.message.value.decode(errors='replace')}")

    def takes(self, op, n, tokens):
        return True

    def set(self, mode, pdl):
        for name, on in (("sgl_jit_set_batch_invariant", mode == "invariant"), ("sgl_jit_set_pdl", pdl == "on")):
            if name not in self.missing:
                self.check(getattr(self.library, name)(ctypes.c_int(on), self.message, ctypes.c_size_t(512)))

    def call(self, data, i, tokens, dtype):
        output, a, w = (self.card.address(t) for t in data.of(i, tokens, dtype))
        n, k, device = data.n, data.k, self.card.device_type
        views = [tensor(output, device, dtype, (tokens, n), (n, 1)), tensor(a, device, "bf16", (tokens, k), (k, 1)),
                 tensor(w, device, "bf16", (n, k), (k, 1)) if data.op == "router" else tensor(w, device, "bf16", (k, n), (1, k))]
        function = getattr(self.library, f"sgl_jit_dsv3_{data.op}_gemm")
        arguments = [*map(ctypes.byref, views), self.card.stream, self.message, ctypes.c_size_t(512)]

        def launch():
            status = function(*arguments)
            if status:
                self.check(status)
        return launch


class Aot:
    name = "aot"
    modes, pdl = ("default",), ("off", "on")

    def __init__(self, card, path):
        self.card, self.library = card, ctypes.CDLL(str(path))

    def takes(self, op, n, tokens):
        return tokens <= report.AOT_TOKENS and n in {"router": (256, 384), "fused_a": (2112,)}[op]

    def set(self, mode, pdl):
        self.library.aot_set_pdl(pdl == "on")

    def call(self, data, i, tokens, dtype):
        pointers = [ctypes.c_void_p(self.card.address(t)) for t in data.of(i, tokens, dtype)]
        shape = (tokens, data.n, int(dtype == "f32")) if data.op == "router" else (tokens,)
        function = getattr(self.library, f"aot_{data.op}")
        arguments = [*pointers, *shape, self.card.stream]

        def launch():
            status = function(*arguments)
            if status:
                raise RuntimeError(f"the AOT kernel returned {status}")
        return launch


class Cublas:
    name = "cublas"
    modes, pdl = ("default",), ("off",)

    def __init__(self, card):
        self.card = card

    def takes(self, op, n, tokens):
        return True

    def set(self, mode, pdl):
        pass

    def call(self, data, i, tokens, dtype):
        return self.card.cublas(*data.of(i, tokens, dtype))


# --- the measurements ------------------------------------------------------------------------------------------------


def contestants(sides, data, tokens):
    return [(side, mode) for side in sides if side.takes(data.op, data.n, tokens) for mode in side.modes]


def turns(items, rounds):
    """The items again and again, another one first each time."""
    for r in range(rounds):
        yield from items[r % len(items):] + items[:r % len(items)]


def right(side, dtype, error, rounding):
    if side.name != "own":
        return error <= report.OTHER_ERROR
    return error <= (report.OWN_F32_ERROR if dtype == "f32" else report.OWN_BF16_SHARE * rounding)


def compare(card, data, dtype, tokens, side, mode, run, i, what, errors, problems):
    """Runs, and looks at what call i left behind."""
    output = data.of(i, tokens, dtype)[0]
    card.poison(output)
    run()
    card.synchronize()
    error, rounding = card.error(output, data.exact[i][:tokens])
    key = (data.op, data.n, data.k, dtype, tokens, side.name, mode)
    errors[key] = max(error, errors.get(key, 0)) if not math.isnan(error) else error
    if not right(side, dtype, error, rounding):
        problems.append(f"wrong result: {' '.join(map(str, key))}, {what}: error {error:.2e}")


def time_graphs(card, data, dtype, tokens, sides, errors, problems, failed):
    """Rows of the graph times. Who cannot run is added to `failed`: (tokens, side, mode)."""
    graphs = []
    for side, mode in contestants(sides, data, tokens):
        mine = []
        try:
            side.set(mode, "off")
            compare(card, data, dtype, tokens, side, mode, side.call(data, 0, tokens, dtype), 0, "one call", errors, problems)
            for pdl in side.pdl:
                side.set(mode, pdl)
                for l2 in ("cold", "warm"):
                    graph = card.capture([side.call(data, i if l2 == "cold" else 0, tokens, dtype) for i in range(data.sets)])
                    if l2 == "cold":
                        compare(card, data, dtype, tokens, side, mode, lambda: card.replay(graph), data.sets - 1, f"in a graph, PDL {pdl}", errors, problems)
                    mine.append(((side.name, mode, "graph", l2, pdl), graph, []))
            graphs += mine
        except RuntimeError as e:
            failed.add((tokens, side.name, mode))
            problems.append(f"{data.op} {data.n} {dtype}, {tokens} tokens, {side.name} {mode}: {e}")
        finally:
            side.set("default", "off")
    for _, graph, timed in turns(graphs, GRAPH_ROUNDS):
        card.replay(graph)
        timed += [card.timed_replay(graph) for _ in range(GRAPH_TIMED)]
    card.synchronize()
    shape = (data.op, data.n, data.k, dtype)
    return [report.row(shape, tokens, *key, [card.elapsed_us(t) / data.sets for t in timed]) for key, _, timed in graphs]


def time_kernels(card, data, dtype, token_counts, sides, problems, failed):
    segments, plan = [], []
    for tokens in token_counts:
        all_sides = [(side, mode) for side, mode in contestants(sides, data, tokens) if (tokens, side.name, mode) not in failed]
        at = 0
        for side, mode in turns(all_sides, KERNEL_ROUNDS):
            calls = [side.call(data, (at + i) % data.sets, tokens, dtype) for i in range(COLD_CALLS)]
            at += COLD_CALLS
            segments.append(((tokens, side.name, mode, "kernel", "cold", "off"), COLD_CALLS, COLD_DROPPED))
            plan.append((side, mode, calls))
        for side, mode in turns(all_sides, KERNEL_ROUNDS):
            segments.append(((tokens, side.name, mode, "kernel", "warm", "off"), WARM_CALLS, WARM_DROPPED))
            plan.append((side, mode, [side.call(data, 0, tokens, dtype)] * WARM_CALLS))

    def run():
        for _, _, calls in plan[:WARM_UP_TURNS]:  # the card comes from rest; what is before the first mark does not count
            for call in calls:
                call()
        card.mark()
        for side, mode, calls in plan:
            side.set(mode, "off")
            for call in calls:
                call()
            card.mark()
            side.set("default", "off")

    try:
        events = card.profile(run)
    except RuntimeError as e:
        problems.append(f"profile of {data.op} {data.n} {dtype}: {e}")
        return []
    times, found = report.attribute(events, segments, card.is_mark)
    shape = (data.op, data.n, data.k, dtype)
    problems += [f"profile of {data.op} {data.n} {dtype}: {text}" for text in found]
    return [report.row(shape, *key, samples) for key, samples in times.items()]


def measure(card, sides, shapes, token_counts, progress=lambda text: None):
    """(rows, errors, problems) of all shapes (op, n, k, dtype)."""
    rows, errors, problems, data, failed = [], {}, [], {}, {shape: set() for shape in shapes}
    for shape in shapes:
        op, n, k, dtype = shape
        if shape[:3] not in data:
            data[shape[:3]] = Data(card, op, n, k)
        progress(f"graphs of {op} {n} {dtype}")
        for tokens in token_counts:
            rows += time_graphs(card, data[shape[:3]], dtype, tokens, sides, errors, problems, failed[shape])
    card.profile(card.mark)  # the first one starts the profiler
    for shape in shapes:
        op, n, k, dtype = shape
        progress(f"kernels of {op} {n} {dtype}")
        rows += time_kernels(card, data[shape[:3]], dtype, token_counts, sides, problems, failed[shape])
    return rows, errors, problems


# --- the command -----------------------------------------------------------------------------------------------------


def numbers(text):
    return tuple(int(part) for part in text.split(","))


def options(arguments):
    parser = argparse.ArgumentParser(description="Times our kernels, cuBLAS and the old AOT kernels on a GPU.")
    parser.add_argument("--op", choices=("router", "fused_a", "all"), default="all")
    parser.add_argument("--experts", type=numbers, default=(256, 384), help="of the router; default 256,384")
    parser.add_argument("--dtype", choices=("f32", "bf16", "all"), help="of the router's output; default all, with --quick f32")
    parser.add_argument("--tokens", type=numbers, help="default " + ",".join(map(str, TOKENS)))
    parser.add_argument("--quick", action="store_true", help="tokens 1, 8 and 16, float32 output, one line a kernel")
    parser.add_argument("--own-only", action="store_true", help="only our kernels")
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build/lib/libsgl_kernel_jit.so")
    parser.add_argument("--aot", type=pathlib.Path, default=ROOT / "build/gpu-aot/libaot.so", help="library with the old kernels; the top of this file says which functions it needs")
    parser.add_argument("--commit", help="what is measured, where this tree is no git repository")
    parser.add_argument("--csv", type=pathlib.Path, help="where to write all measurements")
    opt = parser.parse_args(arguments)
    opt.tokens = opt.tokens or (QUICK_TOKENS if opt.quick else TOKENS)
    if not all(1 <= t <= MAX_TOKENS for t in opt.tokens):
        parser.error(f"--tokens must be 1 to {MAX_TOKENS}")
    opt.dtype = opt.dtype or ("f32" if opt.quick else "all")
    return opt


def shapes_for(opt):
    dtypes = ("f32", "bf16") if opt.dtype == "all" else (opt.dtype,)
    shapes = [("router", n, K, dtype) for n in opt.experts for dtype in dtypes] if opt.op != "fused_a" else []
    return shapes + ([("fused_a", 2112, K, "bf16")] if opt.op != "router" else [])


def commit():
    try:
        run = lambda *a: subprocess.run(["git", "-C", str(ROOT), *a], capture_output=True, text=True, timeout=20)
        head = run("rev-parse", "--short=12", "HEAD").stdout.strip()
        return (head + (" and changes" if run("status", "--porcelain", "-uno").stdout.strip() else "")) if head else "unknown"
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"


def make_sides(card, opt):
    """(sides, notes)"""
    own, notes = Own(card, opt.library), []
    notes += [f"own: this library has no {symbol}, so that mode is not measured" for symbol in own.missing]
    if opt.own_only:
        return [own], notes
    sides = [own, Cublas(card)]
    if opt.aot.exists():
        sides.append(Aot(card, opt.aot))
    else:
        notes.append(f"aot: not built ({opt.aot} is missing)")
    return sides, notes


def main(arguments, make_card=Card):
    opt = options(arguments)
    os.environ.pop("TRTLLM_ENABLE_PDL", None)  # the switch below decides
    try:
        card = make_card()
        sides, notes = make_sides(card, opt)
    except Unavailable as e:
        print(f"bench.py: {e}", file=sys.stderr)
        return 2
    facts = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "commit": opt.commit or commit(), **card.facts()}
    rows, errors, problems = measure(card, sides, shapes_for(opt), opt.tokens, lambda text: print(text, file=sys.stderr, flush=True))
    facts["clocks after"] = card.facts().get("clocks", "unknown")
    if opt.csv:
        opt.csv.parent.mkdir(parents=True, exist_ok=True)
        report.write_csv(opt.csv, facts, rows, errors)
    print("; ".join(f"{name} {value}" for name, value in facts.items()))
    if opt.quick:
        print("\n".join([*report.compact(rows, errors), *(f"note: {n}" for n in notes)]))
    else:
        print(report.tables(rows, errors, notes))
    musts, goals = report.verdicts(rows, any(side.name == "aot" for side in sides) or opt.own_only)
    print()
    for text, ok in musts:
        print(f"{'must OK    ' if ok else 'must open  ' if ok is None else 'must MISSED'}  {text}")
    for text in goals:
        print(f"goal MISSED  {text}")
    for text in report.slower_in_graphs(rows):
        print(f"in a graph slower than the AOT kernel: {text}")
    for text in problems:
        print(f"PROBLEM      {text}")
    missed = sum(ok is False for _, ok in musts)
    print(f"{sum(ok is True for _, ok in musts)} musts met, {missed} missed, {sum(ok is None for _, ok in musts)} open; {len(goals)} goals missed; {len(problems)} problems")
    return 1 if missed or problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
