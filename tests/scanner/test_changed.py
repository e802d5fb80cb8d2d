#!/usr/bin/env python3
"""scan --changed: what it says, that nothing changes without it, comments and baseline; explain of changes. The verdicts are
fixed by the cases in tests/cases/changed."""
import json, pathlib
from tool import ARGS, Tree, contains, equal, main, run

CASES = pathlib.Path(__file__).resolve().parents[1] / "cases"
CALL = "import sgl_kernel\nsgl_kernel.topk_softmax(w, i, x, g)\n"
HEADER = '#include "sgl_kernel_ops.h"\nvoid f() { moe_align_block_size(i, 1, 2, s, e, p, c, true); }\n'


def lines(files, *args):
    with Tree(files) as tree:
        done = tree.run("scan", "--format", "json", *(args or [*ARGS, "--changed"]), ".")
        return [f"{f['path']}:{f['line']}:{f['column']} {f['level']} {f['evidence']} {f['symbol']}: {f['message']}" for f in json.loads(done.stdout)["findings"]]


def test_messages():
    equal(lines({"a.py": CALL, "b.cc": HEADER, "c.py": CALL.replace("w, i, x, g", "*a"), "d.py": CALL.replace("x, g", "x, g, renormalise=True")}), [
        "a.py:2:12 warning ast changed:topk_softmax: topk_softmax has another form from 0.2.2 (#7744) on: argument 3 was token_expert_indices and is "
        "gating_output; leave out token_expert_indices, give arguments by keyword",
        "b.cc:2:12 error lexical changed:moe_align_block_size: moe_align_block_size has another form from 0.4.5 (#23754) on: ignore_invalid_expert is missing; "
        "pass ignore_invalid_expert",
        "c.py:2:12 warning ast changed:topk_softmax: topk_softmax has another form from 0.2.2 (#7744) on: the arguments of this call cannot be told; "
        "token_expert_indices is gone; renormalize with a default at the end; gating_output moved; leave out token_expert_indices, give arguments by keyword",
        "d.py:2:12 error ast changed:topk_softmax: topk_softmax has another form from 0.2.2 (#7744) on: there is no argument renormalise; "
        "leave out token_expert_indices, give arguments by keyword",
    ])


def test_nothing_without_the_option():
    for case in sorted((CASES / "changed").iterdir()):
        equal((case.name, [line for line in lines({p.name: p.read_bytes() for p in (case / "input").iterdir()}, "--kernel", "0.4.4", "--to", "jit")
                           if "changed:" in line]), (case.name, []))


def test_removed_names_are_the_same_with_it():
    """All other cases: --changed adds results and takes none away."""
    def rows(done):
        return [f"{r['ruleId']} {r['level']} {r['message']['text']} {r['locations']}" for r in json.loads(done.stdout)["runs"][0]["results"]]
    for group in ("python", "cpp", "text", "build", "negative"):
        args = ["scan", "--no-cache", "--format", "sarif", *ARGS]
        plain, more = (rows(run(*args, *option, CASES / group)) for option in ([], ["--changed"]))
        equal((group, [row for row in more if not row.startswith("changed:")]), (group, plain))


def test_exit_status_and_rule():
    with Tree({"a.py": CALL}) as tree:
        equal(tree.run("scan", *ARGS, ".").returncode, 0)
        done = tree.run("scan", "--changed", "--format", "sarif", *ARGS, ".")
        equal(done.returncode, 3)
        rule = json.loads(done.stdout)["runs"][0]["tool"]["driver"]["rules"][0]
        equal(rule["id"], "changed:topk_softmax")
        contains(rule["help"]["text"], "python:topk_softmax@0.2.2 from 0.2.2 on: token_expert_indices is gone;")
        for name in ("text", "html", "github", "junit"):
            contains(tree.run("scan", "--changed", "--format", name, *ARGS, ".").out.replace("%3A", ":"), "changed:topk_softmax")


def test_every_scan_reads_anew():
    """Results of a scan without the option do not serve one with it, nor the other way round."""
    with Tree({"a.py": CALL}) as tree:
        for option, status in (([], 0), (["--changed"], 3), ([], 0), (["--changed"], 3)):
            equal(tree.run("scan", *option, *ARGS, ".").returncode, status)


def test_comments_and_baseline():
    comment = CALL.replace(")\n", ")  # sgl-migrate: ignore[changed:topk_softmax] reason=checked\n")
    with Tree({"a.py": comment}) as tree:
        equal([tree.run("scan", *option, *ARGS, ".").returncode for option in (["--changed"], [])], [0, 0])
    with Tree({"a.py": comment.replace("changed:topk", "changed:top")}) as tree:
        done = tree.run("scan", "--changed", *ARGS, ".")
        contains(done.err, "no removed name is called 'changed:top_softmax'")
    with Tree({"a.py": CALL}) as tree:
        equal(tree.run("scan", "--changed", "--write-baseline", "base", *ARGS, ".").returncode, 0)
        equal(tree.run("scan", "--changed", "--baseline", "base", *ARGS, ".").returncode, 0)


def test_other_catalog():
    catalog = """library:
  package: sgl_kernel
  op_namespace: sgl_kernel
  releases: [1.0, 1.1]
symbols: []
changes:
  - id: "python:mul@1.1"
    what: python
    name: mul
    modules: [sgl_kernel.gemm]
    release: 1.1
    breaks: calls
    before: "(a, b)"
    after: "(a, b, c)"
    reason: c is needed.
    remedy: pass c
    provenance: [history]
"""
    with Tree({"c.yaml": catalog, "a.py": "from sgl_kernel.gemm import mul\nmul(1, 2)\nmul(1, 2, 3)\n"}) as tree:
        done = tree.run("scan", "--changed", "--catalog", "c.yaml", "--kernel", "1.1", "--to", "jit", "a.py")
        contains(done.out, "a.py:2:1: report changed:mul: mul has another form from 1.1 on: c is missing; pass c\n")
        contains(done.out, "1 live use in 1 file")


def test_explain():
    done = run("explain", "sgl_kernel.moe_align_block_size")
    equal((done.returncode, done.err), (0, ""))
    contains(done.out, "Python, from 0.2.8 on (#8514, 2025-07-31)\n  before: moe_align_block_size(topk_ids, ")
    contains(done.out, "  token_cnts_buffer is gone; cumsum_buffer and pad_sorted_token_ids moved.\n  what to do: leave out token_cnts_buffer, ")
    done = run("explain", "dsv3_router_gemm")  # a removed name has changed before
    contains(done.out, "gone from 0.4.5")
    contains(done.out, "\n----\n\ndsv3_router_gemm: what changed of it\n\nPython, from 0.2.6.post1 on (#7999, 2025-07-20)\n")
    done = run("explain", "ImportError: cannot import name 'dsv3_router_gemm' from 'sgl_kernel'")  # no matter there
    equal("what changed" in done.out, False)
    done = run("explain", "undefined symbol: _Z20moe_align_block_sizeN2at6TensorEllS0_S0_S0_S0_b")
    contains(done.out, "\n----\n\nmoe_align_block_size: what changed of it\n\nC++, from 0.4.5 on (#23754, 2026-07-14); on CUDA, MUSA, ROCm\n")
    for text, remedy in (("No module named 'deep_gemm'", "install sgl-deep-gemm"), ("sgl-kernel", "uninstall sgl-kernel first"),
                         ("sgl_kernel.common_ops", "import sgl_kernel, and take its attribute common_ops")):
        done = run("explain", text)
        equal(done.returncode, 0)
        contains(done.out, remedy)
        equal("--changed" in done.out, False)


main(globals())
