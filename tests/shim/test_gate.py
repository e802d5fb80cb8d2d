#!/usr/bin/env python3
"""sgl-compat gate, on policies, statistics and findings that are made here."""
import datetime, json, os, pathlib, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from suite import main

BUILD = pathlib.Path(os.environ["BUILD_DIR"]).resolve()
TOOL = BUILD / "bin" / "sgl-compat"
ROUTER = "dsv3_router_gemm"
BASIS = "statistics: 1 process of 1 job on 1 host, written 2025-12-01 to 2025-12-01 (UTC). Replays of captured graphs are not seen.\nsources: not looked at, since there is no --sarif\n"


def header(**more):
    return {"schema": "sgl-kernel-compat-usage/1", "version": "0.1.0", "package": "sgl_kernel", "host": "node1", "pid": 7, "start": 1, "written": 1764547200,
            "job": "SLURM_JOB_ID=12", "rank": "0", "program": "/usr/bin/python3", **more}


def use(symbol=ROUTER, face="python", calls=(("warn", 3),), **more):
    return {"symbol": symbol, "face": face, "calls": dict(calls), "first": 1764500000, "removed_in": "0.4.5", **more}


def shadow(symbol=ROUTER, **counts):
    return {"shadow": symbol, **{name: 0 for name in ("calls", "matches", "mismatches", "ignored", "over_budget", "errors")}, **counts}


def finding(symbol=ROUTER, verdict="rewrite", line=3):
    return {"ruleId": symbol, "level": "error", "message": {"text": "gone"}, "properties": {"verdict": verdict},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": "serve.py"}, "region": {"startLine": line}}}]}


def scan(*results, exit_code=0, successful=True, notes=(), properties=(), **more):
    """A SARIF log as sgl-migrate writes it."""
    return {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "sgl-migrate"}}, "results": list(results),
                                          "invocations": [{"executionSuccessful": successful, "exitCode": exit_code, "toolExecutionNotifications": list(notes)}],
                                          "properties": {"kernel": "0.4.8", "filesAnalysed": 12, **dict(properties)}, **more}]}


def gate(policy, *lines, sarif=None, status=0, processes=True, head=header, basis=False):
    """What it answers about a policy's text, a process's statistics and a scan's log; the basis is left out unless it is asked for."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "policy").write_text(policy)
        (folder / "stats").mkdir()
        if processes:
            (folder / "stats" / "node1-7-1.jsonl").write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in (head(lines=len(lines)), *lines)))
        arguments = ["--policy", "policy", "--stats", "stats"]
        if sarif is not None:
            (folder / "found.sarif").write_text(sarif if isinstance(sarif, str) else json.dumps(sarif))
            arguments += ["--sarif", "found.sarif"]
        out = run(*arguments, status=status, cwd=folder)
        return out if basis else "".join(line for line in out.splitlines(True) if not line.startswith(("statistics: ", "sources: ")))


def run(*arguments, status=0, cwd=None):
    done = subprocess.run([TOOL, "gate", *arguments], capture_output=True, text=True, timeout=60, cwd=cwd)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    assert "Sanitizer" not in done.stderr, done.stderr
    return done.stderr if status == 2 else done.stdout + done.stderr


def equal(have, want):
    assert have == want, f"\n  have {have!r}\n  want {want!r}"


def test_to_warn():
    equal(gate(f"{ROUTER} = silent\n", use(calls=[("silent", 9)])), f"{ROUTER}: silent to warn: yes\n")
    equal(gate(f"{ROUTER} = silent\n", processes=False, status=3),
          f"{ROUTER}: silent to warn: not known\n    no process has written statistics, so nothing is known of its uses\n")


def test_the_basis():
    """What the answers rest on comes first."""
    equal(gate(f"{ROUTER} = warn\n", basis=True), BASIS + f"{ROUTER}: warn to error: yes\n")
    assert "sources: found.sarif: 12 files, against kernel 0.4.8\n" in gate(f"{ROUTER} = warn\n", sarif=scan(), basis=True)
    note = {"level": "note", "descriptor": {"id": "not-entered"}}
    out = gate(f"{ROUTER} = warn\n", sarif=scan(notes=[note, note], properties={"ignoredByGit": 3}), basis=True)
    assert "sources: found.sarif: 12 files, against kernel 0.4.8; left out on purpose, or ignored by git: 5\n" in out, out


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
    # Whom a ramp's error met, or one that was taken back, the next stage would break.
    for policy in (f"{ROUTER} = warn\n", f"{ROUTER} = warn\nramp {ROUTER} 25% to error\n"):
        out = gate(policy, use(calls=[("error", 2)], failed=2), status=1)
        assert out.startswith(f"{ROUTER}: warn to error: no\n    it is in use: 2 times, in 1 process"), out
    # What nobody answers for fails whatever its stage is.
    equal(gate("is_hopper_arch = warn\n", use("is_hopper_arch", calls=[("tombstone", 2)])), "is_hopper_arch: warn to error: yes\n")


def test_sources():
    policy = f"{ROUTER} = warn\n"
    equal(gate(policy, sarif=scan(finding(verdict="mention"), finding("bmm_fp8"))), f"{ROUTER}: warn to error: yes\n")
    found = [finding(), finding(verdict="report", line=9)]
    want = f"{ROUTER}: warn to error: no\n    the sources have 2 live uses of it, the first at serve.py:3\n"
    equal(gate(policy, sarif=scan(*found), status=1), want)
    # Also one that a comment or a baseline accepts breaks.
    equal(gate(policy, sarif=scan(*(dict(one, suppressions=[{"kind": "inSource"}]) for one in found)), status=1), want)


def test_scans_that_do_not_tell():
    """No finding is no answer where the scan did not look, or not at all of it."""
    policy, unknown = f"{ROUTER} = warn\n", f"{ROUTER}: warn to error: not known\n    "
    note = {"level": "error", "message": {"text": "UTF-16"}, "descriptor": {"id": "not-analysed"}, "locations": [{"physicalLocation": {"artifactLocation": {"uri": "u.py"}}}]}
    for sarif, why in (
            (scan(successful=False), "the scan of the sources has left something out"),
            (scan(exit_code=5), "the scan of the sources has left something out"),
            (scan(exit_code="0"), "the scan of the sources has left something out"),
            (scan(notes=[note]), "the scan of the sources has left something out; u.py: UTF-16"),
            (scan(invocations=[]), "the scan of the sources does not say how it ended"),
            (scan(properties={"filesAnalysed": 0}), "the scan of the sources has looked at no file"),
            (scan(properties={"shard": "1/2"}), "the scan of the sources is shard 1/2; sgl-migrate merge joins them"),
            (scan(properties={"kernel": "9.9.9"}), "the scan of the sources was against kernel '9.9.9', which is not known here"),
            (scan(properties={"kernel": "0.4.4"}), "the scan of the sources was against kernel 0.4.4, which still has some of it; 0.4.6 is the first without"),
            (scan(properties={"kernel": "0.4.5"}), "the scan of the sources was against kernel 0.4.5, which still has some of it; 0.4.6 is the first without")):
        equal(gate(policy, sarif=sarif, status=3), f"{unknown}{why}\n")
    equal(gate(policy, sarif=scan(properties={"kernel": "0.4.6"})), f"{ROUTER}: warn to error: yes\n")
    equal(gate(f"{ROUTER} = silent\n", sarif=scan(exit_code=4)), f"{ROUTER}: silent to warn: yes\n")  # which does not ask the sources
    for sarif, why in (
            ("{", "found.sarif:1: "), ({"a": 1}, "found.sarif: this is no scan: SARIF 2.1.0 with a run is needed"), ([], "found.sarif: this is no scan"),
            ({"version": "2.1.0", "runs": []}, "found.sarif: this is no scan"), (dict(scan(), version="2.0.0"), "found.sarif: this is no scan"),
            (scan(results=None), "found.sarif: runs[0] has no results: the scan did not end"),
            (scan(tool={"driver": {"name": "sgl-migrate audit"}}), "found.sarif: runs[0] was not written by sgl-migrate scan"),
            (scan(dict(finding(), ruleId=None)), "found.sarif: runs[0].results[0] has no ruleId or verdict"),
            (scan(finding(verdict="rewrit")), "found.sarif: runs[0].results[0] has no ruleId or verdict")):
        out = gate(policy, sarif=sarif, status=3)
        assert why in out and f"{unknown}the scan of the sources could not be read\n" in out, out
    out = gate(policy, use(), sarif=scan(exit_code=4), status=1)
    assert out.startswith(f"{ROUTER}: warn to error: no\n    it is in use") and out.endswith("has left something out\n"), out


def test_what_the_scanner_writes():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def found(*arguments):
            return subprocess.run([BUILD / "bin/sgl-migrate", "scan", "--format", "sarif", *arguments, "src"], cwd=folder, capture_output=True, text=True).stdout

        (folder / "src").mkdir()
        (folder / "src" / "serve.py").write_text(f"from sgl_kernel import {ROUTER}\n{ROUTER}(1, 2)\n")
        out = gate(f"{ROUTER} = warn\n", sarif=found("--kernel", "0.4.8"), status=1)
        assert "the sources have 1 live use of it, the first at serve.py:1" in out, out
        assert "which still has some of it" in gate(f"{ROUTER} = warn\n", sarif=found("--kernel", "0.4.4"), status=3)
        (folder / "src" / "serve.py").write_text("x = 1\n")
        equal(gate(f"{ROUTER} = warn\n", sarif=found("--kernel", "0.4.8")), f"{ROUTER}: warn to error: yes\n")
        (folder / "src" / "u.py").write_bytes("sgl_kernel.dsv3_router_gemm".encode("utf-16"))
        assert "has left something out; u.py: UTF-16 text" in gate(f"{ROUTER} = warn\n", sarif=found("--kernel", "0.4.8"), status=3)


def test_several_folders_and_scans():
    """None of them goes unread."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "policy").write_text(f"{ROUTER} = warn\n")
        for name, lines, found in (("used", [use()], [finding()]), ("unused", [], [])):
            (folder / name).mkdir()
            (folder / name / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (header(host=name, lines=len(lines)), *lines)))
            (folder / f"{name}.sarif").write_text(json.dumps(scan(*found)))
        for first, second in (("used", "unused"), ("unused", "used")):
            out = run("--policy", "policy", "--stats", first, "--stats", second, status=1, cwd=folder)
            assert "2 processes of 1 job on 2 hosts" in out and "it is in use: 3 times" in out, out
            out = run("--policy", "policy", "--stats", "unused", "--sarif", f"{first}.sarif", "--sarif", f"{second}.sarif", status=1, cwd=folder)
            assert f"sources: {first}.sarif, {second}.sarif: 24 files, against kernel 0.4.8\n" in out and "the sources have 1 live use" in out, out
        (folder / "older.sarif").write_text(json.dumps(scan(properties={"kernel": "0.4.4"})))
        for logs in (("older", "unused"), ("unused", "older")):
            out = run("--policy", "policy", "--stats", "unused", *(f"--sarif={name}.sarif" for name in logs), status=3, cwd=folder)
            assert "against kernel 0.4.4, which still has some of it" in out, out
        (folder / "bad.sarif").write_text("{}")
        for logs in (("bad", "unused"), ("unused", "bad")):
            out = run("--policy", "policy", "--stats", "unused", *(f"--sarif={name}.sarif" for name in logs), status=3, cwd=folder)
            assert "the scan of the sources could not be read" in out, out
        assert "one --policy is needed" in run("--policy", "policy", "--policy", "policy", "--stats", "used", status=2, cwd=folder)


def test_folders_in_folders():
    """Statistics of each job in a folder of its own; links go in no circle; other folders are not in the way."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "policy").write_text(f"{ROUTER} = warn\n")
        (folder / "stats" / "jobs" / "12").mkdir(parents=True)
        (folder / "stats" / "shadow").mkdir()
        (folder / "stats" / "shadow" / "dsv3_router_gemm.shadow").write_text("x")
        (folder / "stats" / "jobs" / "around").symlink_to(folder / "stats")
        (folder / "stats" / "a.jsonl").write_text(json.dumps(header(lines=0)) + "\n")
        assert f"{ROUTER}: warn to error: yes\n" in run("--policy", "policy", "--stats", "stats", cwd=folder)
        (folder / "stats" / "jobs" / "12" / "b.jsonl").write_text(json.dumps(header(lines=1, pid=8)) + "\n" + json.dumps(use()) + "\n")
        out = run("--policy", "policy", "--stats", "stats", status=1, cwd=folder)
        assert "statistics: 2 processes of 1 job" in out and "it is in use: 3 times, in 1 process" in out, out


def test_a_process_that_was_killed_while_it_wrote():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "policy").write_text(f"{ROUTER} = warn\n")
        (folder / "node1-7-1.jsonl").write_text(json.dumps(header(lines=0)) + "\n")
        for name in (".node1-7-1.jsonl.new", ".node1-7-1.prom.new"):  # that one has written before
            (folder / name).write_text("")
        assert f"{ROUTER}: warn to error: yes\n" in run("--policy", "policy", "--stats", ".", cwd=folder)
        (folder / ".node1-8-1.jsonl.new").write_text("")
        out = run("--policy", "policy", "--stats", ".", status=3, cwd=folder)
        assert "./.node1-8-1.jsonl.new: a process writes its first statistics, or was ended while it did" in out and f"{ROUTER}: warn to error: not known\n" in out, out


def test_damaged_statistics():
    """Uses may be in what cannot be read: then nobody knows, and the words and the status say so alike."""
    unknown = f"{ROUTER}: warn to error: not known\n    uses of it may be in the statistics that could not be read\n"
    for line in ('{"symbol":"dsv3', json.dumps(use(calls=[("warn", -1)])) + "\n", json.dumps(use("new_name")) + "\n"):
        out = gate(f"{ROUTER} = warn\n", line, status=3)
        assert unknown in out and "node1-7-1.jsonl:2: no line of statistics" in out, out
    out = gate(f"{ROUTER} = warn\n", use("bmm_fp8"), status=3, head=lambda lines: header(lines=lines + 1))
    assert unknown in out and "a copy that was cut?" in out, out
    out = gate(f"{ROUTER} = warn\n", use(), "{", status=1)
    assert f"{ROUTER}: warn to error: no\n    it is in use: 3 times" in out and "could not be read" in out, out


def test_uses_that_are_not_counted():
    hidden = {"not_counted": ROUTER, "faces": ["operator", "python"]}
    equal(gate(f"{ROUTER} = warn\n", hidden, status=3),
          f"{ROUTER}: warn to error: not known\n    in 1 process an installed sgl_kernel serves it itself, and uses by operator, python are not counted\n")
    equal(gate(f"{ROUTER} = silent\n", hidden), f"{ROUTER}: silent to warn: yes\n")
    equal(gate("bmm_fp8 = warn\n", hidden), "bmm_fp8: warn to error: yes\n")


def test_what_holds_and_not_what_is_written():
    """The question is about the stage that policy.c makes of the file."""
    past, far = "until 2001-01-01 reason late", "until 2999-12-31 reason r"
    for policy, want, status in (
            (f"{ROUTER} = warn\nextend {ROUTER} {past}", "error to tombstone: yes\n    (policy:2: the extension until 2001-01-01 has expired: late)", 0),
            (f"extend {ROUTER} {past}", "error to tombstone: yes\n    (policy:1: the extension until 2001-01-01 has expired: late)", 0),
            (f"extend {ROUTER} {far}", "silent to warn: no\n    policy:1: extended until 2999-12-31: r", 1),
            (f"{ROUTER} = tombstone\nextend {ROUTER} {far}", "error to tombstone: no\n    policy:2: extended until 2999-12-31: r", 1),
            (f"{ROUTER} = warn\ndeny {ROUTER}", "error to tombstone: yes\n    (policy:2: deny)", 0),
            (f"ramp {ROUTER} 25% to error", "warn to error: yes", 0),
            (f"{ROUTER} = silent\nramp {ROUTER} 100% to warn", "silent to warn: yes", 0),
            (f"{ROUTER} = error\ndefault = 0.4.4", "error to tombstone: yes", 0)):
        out = gate(policy, status=status)
        assert f"{ROUTER}: {want}\n" in out, (policy, out)
        assert out.count(": yes") + out.count(": no") == (1 if "default" not in policy else out.count("silent to warn: yes") + 1), out
    # A pin alone: what that release had is silent, for the others it sets nothing.
    out = gate("default = 0.4.5\n")
    assert "awq_dequantize: silent to warn: yes\n    (policy:1: default = 0.4.5)\n" in out and ROUTER not in out, out
    # The machine's own policy has no say.
    os.environ.update(SGL_KERNEL_COMPAT_POLICY=f"{ROUTER} = tombstone", SGL_KERNEL_COMPAT_JOB="4")
    try:
        equal(gate(f"ramp {ROUTER} 100% to error\n"), f"{ROUTER}: warn to error: yes\n")
    finally:
        del os.environ["SGL_KERNEL_COMPAT_POLICY"], os.environ["SGL_KERNEL_COMPAT_JOB"]


def test_extensions():
    tomorrow = datetime.datetime.now(datetime.timezone.utc).date() + datetime.timedelta(days=1)
    line = f"extend {ROUTER} until {tomorrow} reason model 7 moves in March\n"
    equal(gate(f"{ROUTER} = error\n{line}", status=1), f"{ROUTER}: warn to error: no\n    policy:2: extended until {tomorrow}: model 7 moves in March\n")
    for silent in (f"{ROUTER} = silent\n", "default = 0.4.4\n", f"{ROUTER} = silent\nramp {ROUTER} 25% to error\n"):  # where it softens nothing, too
        out = gate(silent + line, status=1)
        assert f"{ROUTER}: silent to warn: no\n" in out and f"    policy:{silent.count(chr(10)) + 1}: extended until {tomorrow}: model 7" in out, out


def test_shadow():
    policy = f"{ROUTER} = warn\nshadow {ROUTER} first=2\n"
    equal(gate(policy, shadow(calls=9, matches=2)), f"{ROUTER}: warn to error: yes\n")
    equal(gate(policy, shadow(calls=9, ignored=2), status=1), f"{ROUTER}: warn to error: no\n"
          "    the policy has its shadow on, but nothing was compared: 0 matched, 0 did not, 2 ignored, 0 over the budget, 0 errors, of 9 calls\n")
    equal(gate(policy, status=1), f"{ROUTER}: warn to error: no\n    the policy has its shadow on, but no process had it on\n")
    out = gate(f"{ROUTER} = warn\n", shadow(calls=9, matches=7, mismatches=2), status=1)
    assert "2 of its shadow's comparisons did not match" in out, out
    equal(gate(policy, shadow(calls=9, matches=1, errors=8), status=3), f"{ROUTER}: warn to error: not known\n"
          "    8 of its shadow's comparisons ended in an error, so nobody knows what they would show\n")


def test_shadow_of_all_names():
    """It is of those that can be compared, and keeps no other name back."""
    out = gate("* = warn\nshadow * first=2\n", status=1)
    waits = "the policy has its shadow on, but no process had it on"
    assert "awq_dequantize: warn to error: yes\n" in out and "downcast_fp8: warn to error: yes\n" in out, out
    assert f"{ROUTER}: warn to error: no\n    {waits}\n" in out and out.count(waits) < 20, out


def test_many_names():
    out = gate(f"* = warn\ndeny bmm_fp8\n{ROUTER} = silent\n", use("awq_dequantize"), status=1)
    lines = [line for line in out.splitlines() if not line.startswith("    ")]
    assert len(lines) > 60 and "awq_dequantize: warn to error: no" in lines and "bmm_fp8: error to tombstone: yes" in lines, lines
    assert f"{ROUTER}: silent to warn: yes" in lines and lines.count("awq_marlin_repack: warn to error: yes") == 1, lines


def test_faults():
    out = gate("what is this\n", status=3)
    assert "policy:1: " in out and "policy: it sets no stage" in out, out
    out = gate(f"{ROUTER} = warn\nbmm_fp8 = wran\n", status=3)  # what the other line should do is not known
    assert f"{ROUTER}: warn to error: yes\n" in out and "policy:2: stage 'wran'" in out, out
    assert "policy:1: the file is larger than a mebibyte, so no program takes it" in gate(f"{ROUTER} = warn\n" + "#" * 2**20, status=3)
    assert "--policy FILE and --stats PATH are needed" in run(status=2)
    assert "--stats needs a value" in run("--policy", "p", "--stats", status=2)
    assert "gate has no option --what" in run("--what", status=2)
    assert "takes no argument without an option, got x" in run("--policy", "p", "--stats", "s", "x", status=2)
    assert "sgl-compat: nowhere: " in run("--policy", "nowhere", "--stats", "s", status=3)
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "policy").write_text(f"{ROUTER} = warn\n")
        out = run("--policy", "policy", "--stats", "nowhere", status=3, cwd=folder)
        assert "sgl-compat: nowhere: No such file" in out and "no process has written statistics" in out, out


main(globals())
