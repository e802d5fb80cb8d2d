"""What tests/gpu/bench.py does without a GPU: the targets, the order of kernels in a profile, tables and CSV."""
import csv, math, statistics

# Kernel time with a cold L2 in microseconds, K = 7168, by (op, n, dtype) and number of tokens: (must, goal).
TARGETS = {
    ("router", 256, "f32"): {1: (2.4, 2.2), 8: (3.2, 2.6), 16: (3.4, 2.9)},
    ("router", 384, "f32"): {1: (2.9, 2.7), 8: (3.6, 3.1), 16: (3.8, 3.4)},
    ("fused_a", 2112, "bf16"): {tokens: (8.6, 8.0) for tokens in range(1, 17)},
}
AOT_TOKENS = 16  # the old kernels take no more
# Norm of the difference over the norm of the float64 result. A bf16 output is measured by the exact result rounded to
# bf16, which itself is 1.5e-3 to 1.9e-3 off. The others' results are only looked at for blunders.
OWN_F32_ERROR = 2e-7
OWN_BF16_SHARE = 1.01
OTHER_ERROR = 5e-3
MEMORY_RATE = 4.3e12  # bytes a second that a large device copy reaches on an H200

FIELDS = ["op", "n", "k", "dtype", "tokens", "side", "mode", "measure", "l2", "pdl", "us", "low_us", "high_us", "samples"]
# A column of the table: title, measure, L2, PDL.
COLUMNS = [
    ("kernel cold", "kernel", "cold", "off"), ("kernel warm", "kernel", "warm", "off"),
    ("graph cold", "graph", "cold", "off"), ("cold PDL", "graph", "cold", "on"),
    ("graph warm", "graph", "warm", "off"), ("warm PDL", "graph", "warm", "on"),
]


def floor_us(n, k):
    """The time to read the weights once."""
    return n * k * 2 / MEMORY_RATE * 1e6


def row(shape, tokens, side, mode, measure, l2, pdl, samples):
    """One line of the CSV: the median of samples in us, and how far they spread (10th and 90th percentile)."""
    op, n, k, dtype = shape
    ordered = sorted(samples)
    at = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
    us = statistics.median(ordered) if ordered else math.nan
    return dict(op=op, n=n, k=k, dtype=dtype, tokens=tokens, side=side, mode=mode, measure=measure, l2=l2, pdl=pdl, us=us,
                low_us=at(0.1) if ordered else math.nan, high_us=at(0.9) if ordered else math.nan, samples=len(ordered))


def attribute(events, segments, is_marker):
    """Kernel times of each segment of a profile.

    events: (name, start, us) of everything that ran on the device, in any order. Before the first segment, between two
    and after the last one the program ran one marker kernel. segments: (key, calls, dropped): the calls made, of which
    the first `dropped` are warm-up. A call may run several kernels, the same ones each time: they are added up.
    Returns {key: [us of each call]} (segments of one key are joined) and a list of what does not add up."""
    groups, problems, times = [], [], {}
    for name, _, us in sorted(events, key=lambda e: e[1]):
        if is_marker(name):
            groups.append([])
        elif groups:
            groups[-1].append(us)
    if len(groups) != len(segments) + 1:
        return {}, [f"the profile has {len(groups)} marks instead of {len(segments) + 1}: events were lost"]
    for (key, calls, dropped), group in zip(segments, groups):
        if not group or len(group) % calls:
            problems.append(f"{key}: {len(group)} kernels for {calls} calls")
            continue
        each = len(group) // calls
        times.setdefault(key, []).extend(sum(group[i * each:(i + 1) * each]) for i in range(dropped, calls))
    return times, problems


def index(rows):
    return {tuple(r[f] for f in FIELDS[:10]): r["us"] for r in rows}


def shapes_of(rows):
    return list(dict.fromkeys((r["op"], r["n"], r["k"], r["dtype"]) for r in rows))


def verdicts(rows, aot_built):
    """What the targets say of own kernels in their default mode: (text, ok) for each must, ok None where it is open;
    and texts of the goals that were missed."""
    have, musts, goals = index(rows), [], []
    for shape in shapes_of(rows):
        op, n, k, dtype = shape
        name = f"{op} {n}x{k} {dtype}"
        tokens = sorted({r["tokens"] for r in rows if (r["op"], r["n"], r["k"], r["dtype"]) == shape})
        cold = lambda t, side: have.get((*shape, t, side, "default", "kernel", "cold", "off"), math.nan)
        if all((*shape, t, "own", "default", "kernel", "cold", "off") not in have for t in tokens):
            continue
        targets = TARGETS.get((op, n, dtype), {}) if k == 7168 else {}
        for t in tokens:
            if t in targets:
                must, goal = targets[t]
                us = cold(t, "own")
                musts.append((f"{name}, {t} tokens: {us:.2f} us, must {must}, goal {goal}", us <= must))
                if not us <= goal:
                    goals.append(f"{name}, {t} tokens: {us:.2f} us, goal {goal}")
        for side, text, wanted in (("aot", "never slower than the AOT kernel", [t for t in tokens if t <= AOT_TOKENS]),
                                   ("cublas", "ahead of cuBLAS", tokens if op == "router" else [])):
            compared = [t for t in wanted if not math.isnan(cold(t, side))]
            if side == "aot" and not aot_built and wanted:
                musts.append((f"{name}: {text}: not built, so not compared", None))
            elif compared:
                behind = [f"{t} tokens {cold(t, 'own'):.2f} to {cold(t, side):.2f}" for t in compared if not cold(t, "own") <= cold(t, side)]
                musts.append((f"{name}: {text} (tokens {', '.join(map(str, compared))})" + (": " + "; ".join(behind) if behind else ""), not behind))
    return musts, goals


def slower_in_graphs(rows):
    """Information: where own default kernels take longer in a graph than the AOT kernel under the same conditions."""
    have = index(rows)
    for r in rows:
        if r["side"] == "aot" and r["measure"] == "graph":
            key = tuple(r[f] for f in FIELDS[:5]) + ("own", "default") + tuple(r[f] for f in FIELDS[7:10])
            if have.get(key, 0) > r["us"]:
                yield f"{r['op']} {r['n']}x{r['k']} {r['dtype']}, {r['tokens']} tokens, {r['l2']}, PDL {r['pdl']}: {have[key]:.2f} to {r['us']:.2f} us"


def tables(rows, errors, notes):
    """The text for people: a table for each shape, a line for each number of tokens and side."""
    have = index(rows)
    out = []
    for shape in shapes_of(rows):
        op, n, k, dtype = shape
        mine = [r for r in rows if (r["op"], r["n"], r["k"], r["dtype"]) == shape]
        out.append(f"\n{op} {n} x {k}, {dtype} output; us per call; reading the weights at {MEMORY_RATE / 1e12} TB/s takes {floor_us(n, k):.2f}")
        out.append(f"{'tokens':>6} {'side':<16}" + "".join(f"{title:>13}" for title, *_ in COLUMNS) + f"{'error':>10}  must")
        for tokens in sorted({r["tokens"] for r in mine}):
            sides = dict.fromkeys((r["side"], r["mode"]) for r in mine if r["tokens"] == tokens)
            for side, mode in sides:
                line = f"{tokens:>6} {side if mode == 'default' else side + ' ' + mode:<16}"
                for _, measure, l2, pdl in COLUMNS:
                    us = have.get((*shape, tokens, side, mode, measure, l2, pdl), math.nan)
                    line += f"{'-' if math.isnan(us) else format(us, '.2f'):>13}"
                error = errors.get((*shape, tokens, side, mode), math.nan)
                line += f"{'-' if math.isnan(error) else format(error, '.1e'):>10}"
                if (side, mode) == ("own", "default") and k == 7168 and tokens in TARGETS.get((op, n, dtype), {}):
                    must, goal = TARGETS[op, n, dtype][tokens]
                    us = have.get((*shape, tokens, side, mode, "kernel", "cold", "off"), math.nan)
                    line += f"  {'OK' if us <= must else 'MISSED'} {must}, goal {'OK' if us <= goal else 'MISSED'} {goal}"
                out.append(line)
    out += [f"note: {note}" for note in notes]
    return "\n".join(out)


def compact(rows, errors):
    """One line for each kernel and number of tokens: for tuning."""
    have = index(rows)
    for shape in shapes_of(rows):
        mine = [r for r in rows if (r["op"], r["n"], r["k"], r["dtype"]) == shape]
        for tokens, side, mode in dict.fromkeys((r["tokens"], r["side"], r["mode"]) for r in mine):
            text = []
            for title, measure, l2, pdl in COLUMNS:
                us = have.get((*shape, tokens, side, mode, measure, l2, pdl))
                if us is not None:
                    text.append(f"{title} {us:.2f}")
            error = errors.get((*shape, tokens, side, mode), math.nan)
            yield f"{shape[0]} {shape[1]}x{shape[2]} {shape[3]} {tokens:>2} {side} {mode}: {', '.join(text)}, error {error:.1e}"


def write_csv(path, facts, rows, errors):
    with open(path, "w", newline="") as file:
        for name, value in facts.items():
            file.write(f"# {name}: {value}\n")
        writer = csv.DictWriter(file, FIELDS + ["error"])
        writer.writeheader()
        for r in rows:
            error = errors.get((r["op"], r["n"], r["k"], r["dtype"], r["tokens"], r["side"], r["mode"]), math.nan)
            numbers = {f: f"{r[f]:.3f}" for f in ("us", "low_us", "high_us")}
            writer.writerow({**r, **numbers, "error": "" if math.isnan(error) else f"{error:.3e}"})


def read_csv(path):
    """(facts, rows) of what write_csv wrote."""
    with open(path, newline="") as file:
        lines = file.read().splitlines()
    facts = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    for r in rows:
        r.update({f: int(r[f]) for f in ("n", "k", "tokens", "samples")}, **{f: float(r[f]) for f in ("us", "low_us", "high_us")})
    return facts, rows
