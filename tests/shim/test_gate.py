#!/usr/bin/env python3
"""sgl-compat gate, on policies, statistics and findings that are made here."""
import datetime, json, os, pathlib, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from suite import main

BUILD = pathlib.Path(os.environ["BUILD_DIR"]).resolve()
TOOL = BUILD / "bin" / "sgl-compat"
ROUTER = "dsv3_router_gemm"
HEADER = {"schema": "sgl-kernel-compat-usage/1", "version": "0.1.0", "package": "sgl_kernel", "host": "node1", "pid": 7, "written": 1764547200,
          "job": "SLURM_JOB_ID=12", "rank": "0", "program": "/usr/bin/python3"}


def use(symbol=ROUTER, face="python", calls=(("warn", 3),), **more):
    return {"symbol": symbol, "face": face, "calls": dict(calls), "first": 1764500000, "removed_in": "0.4.5", **more}


def shadow(symbol=ROUTER, **counts):
    return {"shadow": symbol, **{name: 0 for name in ("calls", "matches", "mismatches", "ignored", "over_budget", "errors")}, **counts}


def finding(symbol=ROUTER, verdict="rewrite", line=3):
    return {"ruleId": symbol, "level": "error", "message": {"text": "gone"}, "properties": {"verdict": verdict},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": "serve.py"}, "region": {"startLine": line}}}]}


def gate(policy, *lines, findings=None, status=0, processes=True):
    """What it prints about a policy's text, a process's statistics and a scan's findings."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "policy").write_text(policy)
        (folder / "stats").mkdir()
        if processes:
            (folder / "stats" / "node1-7-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (HEADER, *lines)))
        arguments = ["--policy", "policy", "--stats", "stats"]
        if findings is not None:
            (folder / "found.sarif").write_text(findings if isinstance(findings, str) else json.dumps({"version": "2.1.0", "runs": [{"results": findings}]}))
            arguments += ["--sarif", "found.sarif"]
        return run(*arguments, status=status, cwd=folder)


def run(*arguments, status=0, cwd=None):
    done = subprocess.run([TOOL, "gate", *arguments], capture_output=True, text=True, timeout=60, cwd=cwd)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    assert "Sanitizer" not in done.stderr, done.stderr
    return done.stderr if status == 2 else done.stdout + done.stderr


def equal(have, want):
    assert have == want, f"\n  have {have!r}\n  want {want!r}"


def test_to_warn():
    equal(gate(f"{ROUTER} = silent\n", use(calls=[("silent", 9)])), f"{ROUTER}: silent to warn: yes\n")
    equal(gate(f"{ROUTER} = silent\n", processes=False, status=1),
          f"{ROUTER}: silent to warn: no\n    no process has written statistics, so nothing is known of its uses\n")


def test_uses():
    equal(gate(f"{ROUTER} = warn\n"), f"{ROUTER}: warn to error: yes\n")
    equal(gate(f"{ROUTER} = warn\n", use("bmm_fp8")), f"{ROUTER}: warn to error: yes\n")
    caller = {"module": "serve", "file": "serve.py", "line": 7}
    equal(gate(f"{ROUTER} = warn\n", use(caller=caller), status=1),
          f"{ROUTER}: warn to error: no\n    it is in use: 3 times, in 1 process, last on 2025-12-01\n    from python  serve.py:7 (serve): 3, in 1 process\n")
    out = gate(f"{ROUTER} = warn\n", *(use(caller=dict(caller, line=n)) for n in range(5)), status=1)
    assert out.count("    from python") == 3 and out.endswith("    and from 2 other places\n"), out
    # Who meets an error already will meet one still.
    equal(gate(f"{ROUTER} = error\n", use(calls=[("error", 2)], failed=2)), f"{ROUTER}: error to tombstone: yes\n")
    equal(gate(f"{ROUTER} = tombstone\n", use()), f"{ROUTER}: tombstone: no stage follows\n")


def test_sources():
    equal(gate(f"{ROUTER} = warn\n", findings=[finding(verdict="mention"), finding("bmm_fp8")]), f"{ROUTER}: warn to error: yes\n")
    equal(gate(f"{ROUTER} = warn\n", findings=[finding(), finding(verdict="report", line=9)], status=1),
          f"{ROUTER}: warn to error: no\n    the sources have 2 live uses of it, the first at serve.py:3\n")
    assert "found.sarif: this is no SARIF" in gate(f"{ROUTER} = warn\n", findings='{"a": 1}', status=1)
    assert "found.sarif:1: " in gate(f"{ROUTER} = warn\n", findings="{", status=1)


def test_what_the_scanner_writes():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "serve.py").write_text(f"from sgl_kernel import {ROUTER}\n{ROUTER}(1, 2)\n")
        scan = subprocess.run([BUILD / "bin/sgl-migrate", "scan", "--kernel", "0.4.8", "--format", "sarif", "serve.py"], cwd=folder, capture_output=True, text=True)
        out = gate(f"{ROUTER} = warn\n", findings=scan.stdout, status=1)
        assert "the sources have 1 live use of it, the first at serve.py:1" in out, out


def test_extensions():
    tomorrow = datetime.datetime.now(datetime.timezone.utc).date() + datetime.timedelta(days=1)
    line = f"extend {ROUTER} until {tomorrow} reason model 7 moves in March\n"
    out = gate(f"{ROUTER} = error\n{line}", status=1)
    assert f"it is extended until {tomorrow}: model 7 moves in March" in out, out
    equal(gate(f"{ROUTER} = error\nextend {ROUTER} until 2025-01-01 reason late\n"), f"{ROUTER}: error to tombstone: yes\n")
    equal(gate(f"{ROUTER} = silent\n{line}"), f"{ROUTER}: silent to warn: yes\n")  # an extension is of errors


def test_shadow():
    policy = f"{ROUTER} = warn\nshadow {ROUTER} first=2\n"
    equal(gate(policy, shadow(calls=9, matches=2)), f"{ROUTER}: warn to error: yes\n")
    equal(gate(policy, shadow(calls=9, ignored=2), status=1), f"{ROUTER}: warn to error: no\n    its shadow is on, but has compared nothing\n")
    equal(gate(policy, status=1), f"{ROUTER}: warn to error: no\n    its shadow is on, but has compared nothing\n")
    out = gate(f"{ROUTER} = warn\n", shadow(calls=9, matches=7, mismatches=2), status=1)
    assert "2 of its shadow's comparisons did not match" in out, out


def test_many_names():
    out = gate(f"* = warn\ndeny bmm_fp8\n{ROUTER} = silent\n", use("awq_dequantize"), status=1)
    lines = [line for line in out.splitlines() if not line.startswith("    ")]
    assert len(lines) > 60 and "awq_dequantize: warn to error: no" in lines and "bmm_fp8: error to tombstone: yes" in lines, lines
    assert f"{ROUTER}: silent to warn: yes" in lines and lines.count("awq_marlin_repack: warn to error: yes") == 1, lines


def test_faults():
    out = gate("what is this\n", status=1)
    assert "policy:1: " in out and "policy: it sets no stage" in out, out
    assert "--policy FILE and --stats PATH are needed" in run(status=2)
    assert "--stats needs a value" in run("--policy", "p", "--stats", status=2)
    assert "gate has no option --what" in run("--what", status=2)
    assert "takes no argument without an option, got x" in run("--policy", "p", "--stats", "s", "x", status=2)
    assert "sgl-compat: nowhere: " in run("--policy", "nowhere", "--stats", "s", status=1)


main(globals())
