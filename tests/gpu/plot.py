#!/usr/bin/env python3
"""Plot kernel times over the number of tokens from the CSV of bench.py: plot.py CSV SVG

Cold kernel time of each side and the time to read the weights once, a panel for each shape. Written by hand as SVG
instead of by a plotting library: it follows the reader's light or dark scheme, stays small, and needs nothing."""
import pathlib, sys
from xml.sax.saxutils import escape

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench_report as report

# (side, mode): what the legend says, CSS class, dash
LINES = {
    ("own", "default"): ("this library", "own", ""),
    ("own", "invariant"): ("this library, batch-invariant", "own", "5 3"),
    ("aot", "default"): ("old AOT kernel", "aot", ""),
    ("cublas", "default"): ("cuBLAS", "cublas", ""),
}
STYLE = """
svg { font: 12px system-ui, sans-serif; background: #fcfcfb; }
text { fill: #52514e; } .title { fill: #0b0b0b; font-weight: 600; font-size: 13px; }
.grid { stroke: #e1e0d9; } .axis { stroke: #a5a49c; } .line { fill: none; stroke-width: 2; } .floor { stroke: #8b8a82; stroke-width: 1.5; }
.own { stroke: #2a78d6; } .aot { stroke: #d9541e; } .cublas { stroke: #12805a; }
circle.own { fill: #2a78d6; } circle.aot { fill: #d9541e; } circle.cublas { fill: #12805a; }
@media (prefers-color-scheme: dark) {
svg { background: #1a1a19; } text { fill: #c3c2b7; } .title { fill: #fff; } .grid { stroke: #343432; } .axis { stroke: #6f6e68; }
.floor { stroke: #9b9a92; } .own { stroke: #5c9cf0; } .aot { stroke: #f0824f; } .cublas { stroke: #35b487; }
circle.own { fill: #5c9cf0; } circle.aot { fill: #f0824f; } circle.cublas { fill: #35b487; } }
"""
WIDTH, HEIGHT, LEFT, TOP, GAP, MARGIN = 250, 220, 44, 84, 34, 16  # of a panel; margins


def nice_step(top):
    return next(step for step in (0.5, 1, 2, 5, 10, 20, 50) if top / step <= 7)


def panel(shape, rows, left):
    """The SVG of one shape, its plot area starting at x = left."""
    op, n, k, dtype = shape
    mine = [r for r in rows if (r["op"], r["n"], r["k"], r["dtype"]) == shape and r["us"] == r["us"]]
    tokens = sorted({r["tokens"] for r in mine})
    floor = report.floor_us(n, k)
    step = nice_step(max([r["us"] for r in mine] + [floor]) * 1.02)
    top = -(-max([r["us"] for r in mine] + [floor]) * 1.02 // step) * step
    last = max(tokens).bit_length() - 1 + (max(tokens) & (max(tokens) - 1) != 0)  # the axis ends at a power of two
    x = lambda t: left + WIDTH * ((t.bit_length() - 1) + t / (1 << (t.bit_length() - 1)) - 1) / max(last, 1)  # log, straight between powers
    y = lambda us: TOP + HEIGHT * (1 - us / top)
    name = "fused A" if op == "fused_a" else op
    out = [f'<text class="title" x="{left}" y="{TOP - 10}">{name} {n} × {k}, {"fp32" if dtype == "f32" else dtype}</text>']
    for i in range(round(top / step) + 1):
        us = i * step
        out.append(f'<line class="{"axis" if i == 0 else "grid"}" x1="{left}" x2="{left + WIDTH}" y1="{y(us):.1f}" y2="{y(us):.1f}"/>'
                   f'<text x="{left - 6}" y="{y(us) + 4:.1f}" text-anchor="end">{us:g}</text>')
    for power in range(last + 1):
        out.append(f'<text x="{x(1 << power):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{1 << power}</text>')
    out.append(f'<line class="floor" stroke-dasharray="2 3" x1="{left}" x2="{left + WIDTH}" y1="{y(floor):.1f}" y2="{y(floor):.1f}"/>')
    for (side, mode), (label, css, dash) in LINES.items():
        points = sorted((r["tokens"], r["us"]) for r in mine if (r["side"], r["mode"]) == (side, mode))
        if points:
            path = " ".join(f"{x(t):.1f},{y(us):.1f}" for t, us in points)
            out.append(f'<polyline class="line {css}"{f""" stroke-dasharray="{dash}" """ if dash else ""} points="{path}"/>')
            if not dash:
                out += [f'<circle class="{css}" cx="{x(t):.1f}" cy="{y(us):.1f}" r="2.5"><title>{label}, {t} tokens: {us:.2f} us</title></circle>' for t, us in points]
    return out


def plot(facts, rows):
    rows = [r for r in rows if (r["measure"], r["l2"], r["pdl"]) == ("kernel", "cold", "off")]
    shapes = [s for s in report.shapes_of(rows) if s[0] == "fused_a" or s[3] == "f32"] or report.shapes_of(rows)
    if not shapes:
        raise ValueError("no cold kernel times in this file")
    width = LEFT + len(shapes) * (WIDTH + GAP) + (len(shapes) - 1) * 10 + MARGIN - GAP
    height = TOP + HEIGHT + 40
    about = f"{facts.get('gpu', '')}, {facts.get('date', '')[:10]}: kernel time in µs, weights not in the L2, over the number of tokens"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">', f"<title>{escape(about)}</title>",
           f"<style>{STYLE}</style>", f'<text class="title" x="{MARGIN}" y="20">{escape(about)}</text>']
    at = MARGIN
    shown = {(r["side"], r["mode"]) for r in rows}
    for label, css, dash in [LINES[key] for key in LINES if key in shown] + [(f"weights once at {report.MEMORY_RATE / 1e12} TB/s", "floor", "2 3")]:
        out.append(f'<line class="line {css}"{f""" stroke-dasharray="{dash}" """ if dash else ""} x1="{at}" x2="{at + 22}" y1="42" y2="42"/><text x="{at + 28}" y="46">{label}</text>')
        at += 48 + 6.4 * len(label)
    for i, shape in enumerate(shapes):
        out += panel(shape, rows, LEFT + i * (WIDTH + GAP + 10))
    return "\n".join(out + ["</svg>"]) + "\n"


def main(arguments):
    if len(arguments) != 2:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    try:
        text = plot(*report.read_csv(arguments[0]))
    except (OSError, ValueError, KeyError) as e:
        print(f"plot.py: {arguments[0]}: {e}", file=sys.stderr)
        return 2
    pathlib.Path(arguments[1]).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
