#!/usr/bin/env python3
"""tests/gpu/bench.py without a GPU: its measurements with the built library on the CPU reference backend and a clock that
is made up, and the tables, CSV and plot that are made of them."""
import array, contextlib, ctypes, io, math, os, pathlib, random, sys, tempfile
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "gpu")]
os.environ["SGL_KERNEL_JIT_BACKEND"] = "reference"
import bench
import bench_report as report
import plot
from suite import main

LIBRARY = pathlib.Path(os.environ["BUILD_DIR"]) / "lib" / "libsgl_kernel_jit.so"
SHAPES = [("router", 8, 256, "f32"), ("router", 8, 256, "bf16"), ("fused_a", 16, 256, "bf16")]
KERNEL_US = {"own": 2.0, "own invariant": 2.5, "aot": 3.0, "cublas": 5.0}


class Matrix:
    """Rows of a packed bf16 or float32 matrix."""

    def __init__(self, values, rows, columns, dtype):
        self.values, self.rows, self.columns, self.dtype = values, rows, columns, dtype

    def __getitem__(self, part):
        return Matrix(self.values, part.stop, self.columns, self.dtype)

    def row(self, r):
        part = self.values[r * self.columns:(r + 1) * self.columns]
        return [from_bf16(v) for v in part] if self.dtype == "bf16" else list(part)


def from_bf16(bits):
    return memoryview(array.array("I", [bits << 16])).cast("B").cast("f")[0]


def to_bf16(value):
    bits = memoryview(array.array("f", [value])).cast("B").cast("I")[0]
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16


class FakeCard:
    device_type = 1  # SGL_JIT_DEVICE_CPU

    def __init__(self):
        self.stream, self.ran, self.random_state = ctypes.c_void_p(0), [], random.Random(3)
        self.lost = 0  # events that a profile forgets

    def facts(self):
        return {"gpu": "made up", "clocks": "none"}

    def random(self, *sizes):
        return Matrix(array.array("H", [to_bf16(self.random_state.gauss(0, 1)) for _ in range(sizes[0] * sizes[1])]), *sizes, "bf16")

    def empty(self, dtype, *sizes):
        return Matrix(array.array("f" if dtype == "f32" else "H", [0] * (sizes[0] * sizes[1])), *sizes, dtype)

    def address(self, matrix):
        return matrix.values.buffer_info()[0]

    def product(self, a, w):
        weights = [w.row(n) for n in range(w.rows)]
        return [[math.fsum(x * y for x, y in zip(a.row(m), row)) for row in weights] for m in range(a.rows)]

    def poison(self, matrix):
        for i in range(len(matrix.values)):
            matrix.values[i] = math.nan if matrix.dtype == "f32" else 0x7fc0

    def error(self, output, exact):
        rounded = (lambda v: from_bf16(to_bf16(v))) if output.dtype == "bf16" else lambda v: ctypes.c_float(v).value
        difference = sum((h - e) ** 2 for m, row in enumerate(exact) for h, e in zip(output.row(m), row))
        rounding = sum((rounded(e) - e) ** 2 for row in exact for e in row)
        norm = sum(e * e for row in exact for e in row)
        return math.sqrt(difference / norm), math.sqrt(rounding / norm)

    def store(self, output, a, w):
        for m, row in enumerate(self.product(a, w)):
            for n, v in enumerate(row):
                output.values[m * output.columns + n] = v if output.dtype == "f32" else to_bf16(v)

    def cublas(self, output, a, w):
        def call():
            self.store(output, a, w)
            self.ran += [("gemm", 0.6 * KERNEL_US["cublas"]), ("reduce", 0.4 * KERNEL_US["cublas"])]
        return call

    def synchronize(self):
        pass

    def capture(self, calls):  # like a real one, keeps the mode that is set now
        before = len(self.ran)
        calls[0]()
        return calls, sum(us for _, us in self.ran[before:])

    def replay(self, graph):
        for call in graph[0]:
            call()

    def timed_replay(self, graph):
        return len(graph[0]) * (graph[1] + 0.5)

    def elapsed_us(self, timed):
        return timed

    def mark(self):
        self.ran.append(("tanh", 9.0))

    is_mark = staticmethod(bench.Card.is_mark)

    def profile(self, run):
        self.ran = []
        run()
        events = [(name, start, us) for start, (name, us) in enumerate(self.ran)]
        self.random_state.shuffle(events)
        first = min(start for name, start, _ in events if name == "tanh")
        measured = [e for e in events if e[0] != "tanh" and e[1] > first]
        return [e for e in events if e not in measured] + measured[self.lost:]


class Own(bench.Own):
    """The real library, with its switches made up where it has none."""

    def __init__(self, card, path):
        super().__init__(card, path)
        self.modes, self.pdl, self.kind, self.wrong = ("default", "invariant"), ("off", "on"), "own", False

    def set(self, mode, pdl):
        super().set(mode, pdl)
        self.kind = "own" if mode == "default" else "own invariant"

    def call(self, data, i, tokens, dtype):
        launch = super().call(data, i, tokens, dtype)
        output = data.of(i, tokens, dtype)[0]

        def both():
            launch()
            if self.wrong:
                output.values[0] = 77
            self.card.ran.append((self.kind, KERNEL_US[self.kind]))
        return both


class Aot(bench.Cublas):
    name, pdl = "aot", ("off", "on")

    def takes(self, op, n, tokens):
        return tokens <= report.AOT_TOKENS

    def call(self, data, i, tokens, dtype):
        output, a, w = data.of(i, tokens, dtype)

        def launch():
            self.card.store(output, a, w)
            self.card.ran.append(("aot", KERNEL_US["aot"]))
        return launch


@contextlib.contextmanager
def small():
    """Few weight sets and turns, so that pure Python keeps up."""
    kept = {name: getattr(bench, name) for name in ("SETS", "MAX_TOKENS", "KERNEL_ROUNDS", "COLD_CALLS", "COLD_DROPPED", "WARM_CALLS", "WARM_DROPPED", "GRAPH_ROUNDS", "GRAPH_TIMED")}
    bench.SETS, bench.MAX_TOKENS = {"router": 4, "fused_a": 3}, 17
    bench.KERNEL_ROUNDS, bench.COLD_CALLS, bench.COLD_DROPPED, bench.WARM_CALLS, bench.WARM_DROPPED, bench.GRAPH_ROUNDS, bench.GRAPH_TIMED = 2, 4, 1, 3, 1, 2, 2
    try:
        yield
    finally:
        vars(bench).update(kept)


def measured(tokens=(1, 17), change=lambda card, sides: None):
    card = FakeCard()
    sides = [Own(card, LIBRARY), bench.Cublas(card), Aot(card)]
    change(card, sides)
    with small():
        return bench.measure(card, sides, SHAPES, tokens)


def test_measures_every_side():
    rows, errors, problems = measured()
    assert problems == [], problems
    have = report.index(rows)
    for shape in SHAPES:
        for tokens in (1, 17):
            for side, mode in (("own", "default"), ("own", "invariant"), ("cublas", "default"), ("aot", "default")):
                name = side if mode == "default" else f"{side} {mode}"
                for l2 in ("cold", "warm"):
                    for measure, pdl in (("kernel", "off"), ("graph", "off"), ("graph", "on")):
                        us = have.get((*shape, tokens, side, mode, measure, l2, pdl))
                        if (side == "aot" and tokens > 16) or (side == "cublas" and pdl == "on"):
                            assert us is None, (shape, tokens, name)
                        else:
                            want = KERNEL_US[name] + (0.5 if measure == "graph" else 0)
                            assert abs(us - want) < 1e-9, (shape, tokens, name, measure, l2, pdl, us)
        assert errors[(*shape, 1, "own", "default")] < (1e-7 if shape[3] == "f32" else 4e-3)
    kernels = [r for r in rows if r["measure"] == "kernel" and r["l2"] == "cold"]
    assert {r["samples"] for r in kernels} == {6}, {r["samples"] for r in kernels}  # two turns of three calls that count


def test_wrong_results_are_seen():
    def change(card, sides):
        sides[0].wrong = True
    _, _, problems = measured((1,), change)
    # Each shape and mode: a call and the cold graphs with PDL off and on.
    assert len(problems) == 3 * 2 * 3 and all(p.startswith("wrong result: ") and " own " in p for p in problems), problems


def test_lost_events_are_seen():
    def change(card, sides):
        card.lost = 1
    _, _, problems = measured((1,), change)
    assert len(problems) == len(SHAPES) and all("kernels for" in p for p in problems), problems
    marks = [("tanh", i, 1.0) for i in range(2)]
    times, problems = report.attribute(marks, [("a", 1, 0), ("b", 1, 0)], bench.Card.is_mark)
    assert times == {} and "2 marks instead of 3" in problems[0]


def test_a_side_that_fails():
    def change(card, sides):
        original = sides[2].call

        def call(data, i, tokens, dtype):
            def refuse():
                raise RuntimeError("the AOT kernel returned 98")
            return refuse if data.op == "fused_a" else original(data, i, tokens, dtype)
        sides[2].call = call
    rows, _, problems = measured((1,), change)
    assert problems == ["fused_a 16 bf16, 1 tokens, aot default: the AOT kernel returned 98"], problems
    assert {(r["op"], r["measure"]) for r in rows if r["side"] == "aot"} == {("router", "graph"), ("router", "kernel")}
    assert {r["measure"] for r in rows if r["op"] == "fused_a" and r["side"] == "own"} == {"graph", "kernel"}


def test_attribution():
    names = ["old", "tanh", "k", "k", "k", "tanh", "g", "r", "g", "r", "tanh", "k", "tanh"]
    events = [(name, i, float(i)) for i, name in enumerate(names)]
    random.Random(1).shuffle(events)
    times, problems = report.attribute(events, [("own", 3, 1), ("cublas", 2, 0), ("own", 1, 0)], bench.Card.is_mark)
    assert problems == [] and times == {"own": [3.0, 4.0, 11.0], "cublas": [13.0, 17.0]}, (times, problems)


def rows_of(values):
    """{(shape, tokens, side): us} as rows of cold kernel time."""
    return [report.row(shape, tokens, side, "default", "kernel", "cold", "off", [us]) for (shape, tokens, side), us in values.items()]


R = ("router", 256, 7168, "f32")


def test_verdicts():
    rows = rows_of({(R, 1, "own"): 2.4, (R, 8, "own"): 3.3, (R, 16, "own"): 2.8, (R, 1, "aot"): 2.62, (R, 8, "aot"): 3.2, (R, 16, "aot"): 6.7,
                    (R, 1, "cublas"): 5.9, (R, 8, "cublas"): 6.1, (R, 16, "cublas"): 6.3})
    musts, goals = report.verdicts(rows, True)
    assert [ok for _, ok in musts] == [True, False, True, False, True], musts
    assert "8 tokens 3.30 to 3.20" in musts[3][0] and "1 tokens" not in musts[3][0]
    assert [g.split(":")[0] for g in goals] == ["router 256x7168 f32, 1 tokens", "router 256x7168 f32, 8 tokens"], goals
    musts, _ = report.verdicts([r for r in rows if r["side"] != "aot"], False)
    assert [ok for _, ok in musts] == [True, False, True, None, True] and "not built" in musts[3][0]
    # What was not measured is not met.
    musts, _ = report.verdicts([r for r in rows if not (r["side"] == "own" and r["tokens"] == 1)], True)
    assert [ok for _, ok in musts] == [False, False, True, False, False], musts


def test_slower_in_graphs():
    rows = [report.row(R, 1, side, "default", "graph", l2, "on", [us]) for side, l2, us in
            (("own", "cold", 3.0), ("aot", "cold", 2.9), ("own", "warm", 1.0), ("aot", "warm", 1.1))]
    assert list(report.slower_in_graphs(rows)) == ["router 256x7168 f32, 1 tokens, cold, PDL on: 3.00 to 2.90 us"]


def test_table_and_csv():
    rows = rows_of({(R, 1, "own"): 2.4, (R, 1, "aot"): 2.62, (R, 8, "own"): 3.3})
    rows.append(report.row(R, 1, "own", "invariant", "graph", "warm", "on", [3.0, 1.0, 2.0]))
    errors = {(*R, 1, "own", "default"): 8.7e-8}
    text = report.tables(rows, errors, ["aot: not built"])
    lines = [line for line in text.splitlines() if line.strip()]
    assert lines[0].startswith("router 256 x 7168, f32") and "0.85" in lines[0]
    assert lines[2].split() == ["1", "own", "2.40", "-", "-", "-", "-", "-", "8.7e-08", "OK", "2.4,", "goal", "MISSED", "2.2"], lines[2]
    assert lines[4].split()[:3] == ["1", "own", "invariant"] and lines[4].split()[8] == "2.00"
    assert lines[5].split()[-5:] == ["MISSED", "3.2,", "goal", "MISSED", "2.6"] and lines[6] == "note: aot: not built"
    assert len({line.index("must") if "must" in line else line.find("OK") for line in lines[1:3]}) == 1  # aligned
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.csv")
        report.write_csv(path, {"gpu": "a: b"}, rows, errors)
        facts, back = report.read_csv(path)
    assert facts == {"gpu": "a: b"} and report.index(back) == report.index(rows)
    assert back[0]["error"] == "8.700e-08" and back[1]["error"] == "" and (back[3]["low_us"], back[3]["high_us"], back[3]["samples"]) == (1, 3, 3)


def command(arguments, change=lambda card, sides: None):
    """Runs the command on small shapes: (exit status, stdout)."""
    kept = bench.make_sides, bench.shapes_for

    def make_sides(card, opt):
        sides, notes = kept[0](card, opt)
        sides = [Own(card, LIBRARY) if s.name == "own" else s for s in sides]
        change(card, sides)
        return sides, notes
    bench.make_sides, bench.shapes_for = make_sides, lambda opt: SHAPES[:1]
    out = io.StringIO()
    try:
        with small(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            status = bench.main(["--library", str(LIBRARY), "--aot", "/nonexistent/libaot.so", *arguments], FakeCard)
    finally:
        bench.make_sides, bench.shapes_for = kept
    return status, out.getvalue()


def test_command():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "new", "x.csv")
        status, text = command(["--tokens", "1,9", "--csv", str(path)])
        assert status == 0 and "note: aot: not built" in text and "1 musts met, 0 missed, 1 open" in text, text
        facts, rows = report.read_csv(path)
        assert facts["gpu"] == "made up" and {r["tokens"] for r in rows} == {1, 9}
    status, text = command(["--quick", "--tokens", "1", "--own-only"])
    assert status == 0 and "router 8x256 f32  1 own default: kernel cold 2.00" in text and "cublas" not in text, text

    def wrong(card, sides):
        sides[0].wrong = True
    status, text = command(["--tokens", "1"], wrong)
    assert status == 1 and "PROBLEM      wrong result" in text

    kept, KERNEL_US["own"] = KERNEL_US["own"], 6.0
    try:
        status, text = command(["--tokens", "1"])  # slower than cuBLAS
    finally:
        KERNEL_US["own"] = kept
    assert status == 1 and "must MISSED  router 8x256 f32: ahead of cuBLAS" in text, text


def test_plot():
    F = ("fused_a", 2112, 7168, "bf16")
    rows = rows_of({(R, t, side): us for t, side, us in ((1, "own", 2.0), (4, "own", 4.0), (1, "aot", 6.0), (4, "cublas", 5.0))} | {(F, 16, "own"): 8.0, (F, 1, "own"): 8.5})
    rows.append(report.row(R, 1, "own", "default", "kernel", "warm", "off", [99.0]))  # not shown
    rows.append(report.row(("router", 256, 7168, "bf16"), 1, "own", "default", "kernel", "cold", "off", [99.0]))  # nor this
    with tempfile.TemporaryDirectory() as folder:
        table, picture = os.path.join(folder, "x.csv"), os.path.join(folder, "x.svg")
        report.write_csv(table, {"gpu": "A <card>", "date": "2026-11-30 10:00 UTC"}, rows, {})
        assert plot.main([table, picture]) == 0 and os.path.getsize(picture) < 60000
        tree = xml.parse(picture).getroot()
        with contextlib.redirect_stderr(io.StringIO()) as error:
            report.write_csv(table, {}, [], {})
            assert plot.main([table, picture]) == 2 and plot.main([os.path.join(folder, "none"), picture]) == 2 and plot.main([]) == 2
        assert "no cold kernel times" in error.getvalue()
    name = lambda part: "{http://www.w3.org/2000/svg}" + part
    assert tree.find(name("title")).text.startswith("A <card>, 2026-11-30")
    lines = [([tuple(map(float, p.split(","))) for p in e.get("points").split()], e.get("class")) for e in tree.iter(name("polyline"))]
    assert [(len(points), css) for points, css in lines] == [(2, "line own"), (1, "line aot"), (1, "line cublas"), (2, "line own")], lines
    (x1, y1), (x4, y4) = lines[0][0]
    bottom = plot.TOP + plot.HEIGHT
    assert x1 == plot.LEFT and x4 == plot.LEFT + plot.WIDTH and abs((bottom - y4) - 2 * (bottom - y1)) < 0.2  # linear from 0
    assert abs((bottom - lines[1][0][0][1]) - 3 * (bottom - y1)) < 0.3
    floors = [e for e in tree.iter(name("line")) if e.get("class") == "floor"]
    assert len(floors) == 2 and abs((bottom - float(floors[0].get("y1"))) - 0.8535 / 2 * (bottom - y1)) < 0.2


def test_cannot_run():
    def no_card():
        raise bench.Unavailable("no GPU")
    with contextlib.redirect_stderr(io.StringIO()) as error:
        assert bench.main([], no_card) == 2
        assert bench.main(["--library", "/nonexistent/lib.so"], FakeCard) == 2
    assert "no GPU" in error.getvalue() and "/nonexistent/lib.so" in error.getvalue()


def test_options():
    opt = bench.options(["--quick", "--op", "router", "--experts", "256"])
    assert opt.tokens == (1, 8, 16) and bench.shapes_for(opt) == [("router", 256, 7168, "f32")]
    opt = bench.options([])
    assert len(opt.tokens) == 12 and bench.shapes_for(opt) == [("router", n, 7168, d) for n in (256, 384) for d in ("f32", "bf16")] + [("fused_a", 2112, 7168, "bf16")]
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            bench.options(["--tokens", "65"])
            assert False, "65 tokens were taken"
        except SystemExit as e:
            assert e.code == 2


main(globals())
