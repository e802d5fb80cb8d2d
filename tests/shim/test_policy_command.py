#!/usr/bin/env python3
"""sgl-compat policy show and policy check: good and bad files, both forms of output, and a program with more rights than its
caller, which takes nothing from the environment."""
import json, os, pathlib, pwd, random, re, shutil, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from suite import Skip, main

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ["BUILD_DIR"]).resolve() / "bin/sgl-compat"
WORK = tempfile.TemporaryDirectory(prefix="sgl-policy-command-")
HOME = pathlib.Path(WORK.name)


def run(*arguments, status=0, tool=TOOL, **variables):
    environment = {"HOME": str(HOME), "PATH": os.environ["PATH"], **variables}
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    assert "Sanitizer" not in done.stderr, done.stderr
    return done


def put(text, name="policy"):
    path = HOME / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o644)
    return path


def effective(name="dsv3_router_gemm", status=0, **variables):
    (row,) = json.loads(run("policy", "show", "--effective", "--symbol", name, "--json", status=status, **variables).stdout)["names"]
    return row


# --- check ------------------------------------------------------------------------------------------------------------

# (the file, the lines of its faults or parts of them)
FILES = [
    ("", []),
    ("# nothing\n\n   # at all", []),
    ("\ufeffdsv3_router_gemm = warn\r\nbmm_fp8=error # why\r\n", []),
    ("dsv3_router_gemm=warn;bmm_fp8 = error ; default=0.4.4", []),
    ("* = warn\ndsv3_router_gemm = tombstone\ndeny bmm_fp8\nramp awq_dequantize 12.5% to error\nserve * = old\n"
     "shadow dsv3_router_gemm first=3 every=1000 budget=20 tolerance=1e-3 return=other\nextend gptq_gemm until 2999-02-28 reason a; default = 0.4.4", []),
    ("dsv3_router_gem = warn", ["1: 'dsv3_router_gem' is no deleted name of sgl_kernel; did you mean dsv3_router_gemm?"]),
    ("\n\nzzz = warn", ["3: 'zzz' is no deleted name of sgl_kernel; sgl-compat policy show --effective lists them"]),
    ("bmm_fp8 = wran", ["1: stage 'wran' is none of silent, warn, error, tombstone; did you mean warn?"]),
    ("bmm_fp8 =", ["1: this reads: NAME = silent | warn | error | tombstone"]),
    ("bmm_fp8 = warn error", ["1: this reads: NAME = "]),
    ("denny bmm_fp8", ["1: 'denny' begins no directive; did you mean deny?"]),
    ("deny", ["1: this reads: deny NAME"]),
    ("deny bmm_fp9", ["1: 'bmm_fp9' is no deleted name of sgl_kernel; did you mean bmm_fp8?"]),
    ("default = 9.9.9", ["1: '9.9.9' is no release of sgl_kernel that the catalog knows; the newest is "]),
    ("default 0.4.4", ["1: this reads: default = RELEASE"]),
    ("extend bmm_fp8 until 2999-02-29 reason x", ["1: '2999-02-29' is no date: YYYY-MM-DD is needed"]),
    ("extend bmm_fp8 until 29990228 reason x", ["1: '29990228' is no date"]),
    ("extend bmm_fp8 until 2999-02-28", ["1: this reads: extend NAME until YYYY-MM-DD reason TEXT"]),
    ("extend bmm_fp8 until 2999-02-28 reason  ", ["1: this reads: extend NAME"]),
    ("extend bmm_fp8 until 2001-02-28 reason #12, soon", ["1: the extension of bmm_fp8 has expired: it is error"]),
    ("ramp bmm_fp8 101% to error", ["1: '101%' is no share of jobs: 0% to 100%, with two decimals at most"]),
    ("ramp bmm_fp8 1.234% to error", ["1: '1.234%' is no share"]),
    ("ramp bmm_fp8 25 to error", ["1: '25' is no share"]),
    ("ramp bmm_fp8 % to error", ["1: '%' is no share"]),
    ("ramp bmm_fp8 25% error", ["1: this reads: ramp NAME SHARE% to STAGE"]),
    ("serve bmm_fp8 = olf", ["1: serve: 'olf' is none of jit, old, reference, auto; did you mean old?"]),
    ("serve bmm_fp8 jit", ["1: this reads: serve NAME = jit | old | reference | auto"]),
    ("serve awq_dequantize = jit", ["1: there is no kernel for awq_dequantize here: serve has no effect"]),
    ("shadow awq_dequantize first=1", ["1: there is no kernel for awq_dequantize here: shadow has no effect"]),
    ("shadow bmm_fp8", ["1: this reads: shadow NAME first=N"]),
    ("shadow bmm_fp8 frist=1", ["1: shadow has no 'frist': first, every, budget, tolerance or return is needed; did you mean first?"]),
    ("shadow bmm_fp8 first=-1", ["1: first='-1' is no number that is allowed here"]),
    ("shadow bmm_fp8 return=both", ["1: return='both' is no side: jit or other is needed"]),
    ("shadow bmm_fp8 tolerance=nan", ["1: tolerance='nan' is no number"]),
    ("deny bmm_fp8\nbmm_fp8 = warn", ["2: bmm_fp8 is denied in line 1, so it is not warn; only an extension softens that"]),
    ("* = silent\ndeny bmm_fp8\nbmm_fp8 = tombstone", []),
    ("deny *\nbmm_fp8 = warn", ["2: bmm_fp8 is denied in line 1"]),
    ("deny bmm_fp8\nramp bmm_fp8 5% to error", ["2: bmm_fp8 is denied in line 1: the ramp has no effect"]),
    ("bmm_fp8 = error\nramp bmm_fp8 5% to warn", ["2: bmm_fp8 is error by line 1: a ramp to warn has no effect"]),
    ("ramp bmm_fp8 5% to silent", ["1: bmm_fp8: a ramp to silent has no effect, since a ramp only hardens"]),
    ("bmm_fp8 = error\n\nbmm_fp8 = warn\ndefault=0.4.4;default=0.4.5", ["3: bmm_fp8: line 1 says the same kind of thing already; the later one wins",
                                                                         "4: default: line 4 says the same kind"]),
    ("shadow bmm_fp8 budget=5", ["1: shadow bmm_fp8: neither first nor every says which calls, so none is compared"]),
    ("shadow * first=0 tolerance=0.1 return=other", ["1: shadow *: neither first nor every"]),
    ("shadow bmm_fp8 first=0", []),  # which ends the shadow of an earlier source
    ("bmm_fp8 = silent\nextend bmm_fp8 until 2999-02-28 reason x", ["2: bmm_fp8 is silent by line 1: the extension softens nothing, and its end makes it an error"]),
    ("* = silent\nextend bmm_fp8 until 2999-02-28 reason x", ["2: bmm_fp8 is silent by line 1"]),
    ("bmm_fp8 = silent\ndeny bmm_fp8\nextend bmm_fp8 until 2999-02-28 reason x", ["1: bmm_fp8 is denied in line 2, so it is not silent"]),
    ("bmm_fp8 = silent\nramp bmm_fp8 5% to error\nextend bmm_fp8 until 2999-02-28 reason x", []),
    ("gptq_gemm = warn", []),  # nothing here answers for it, but an old wheel does
    ("#" * 2**20 + "\n", ["1: the file is larger than a mebibyte, so no program takes it"]),
    (b"\xff\x00\x01 = warn\nbmm_fp8 = \x1b[31m", ["1: '???' is no deleted name", "2: stage '?[31m' is none of"]),
    ("x" * 500 + " = warn\n" + "y " * 50, ["1: 'xxxxxxxx", "2: 'y' begins no directive"]),
]


def test_check():
    for text, faults in FILES:
        path = put(text, "checked")
        done = run("policy", "check", path, status=1 if faults else 0)
        lines = done.stdout.splitlines()
        assert done.stderr == "", (text, done.stderr)
        if not faults:
            assert len(lines) == 1 and re.fullmatch(rf"{path}: \d+ directives?, no fault", lines[0]), (text, lines)
            continue
        assert len(lines) == len(faults) and all(line.startswith(f"{path}:{fault}") for line, fault in zip(lines, faults)), (text, lines)


def test_check_of_many_files():
    good, bad = put("bmm_fp8=warn", "good"), put("bmm_fp8=warm", "bad")
    done = run("policy", "check", good, bad, HOME / "none", HOME, status=1)
    assert done.stdout == f"{good}: 1 directive, no fault\n{bad}:1: stage 'warm' is none of silent, warn, error, tombstone; did you mean warn?\n"
    assert done.stderr == f"sgl-compat: {HOME}/none: No such file or directory\nsgl-compat: {HOME}: Is a directory\n", done.stderr


def test_check_of_the_largest_file():
    """A fault for each directive, in a second."""
    done = run("policy", "check", put("deny *\n" * 149000, "large"), status=1)
    assert done.stdout.count("\n") == 148999 and "large:149000: *: line 1 says the same" in done.stdout, done.stdout[-200:]


# --- show -------------------------------------------------------------------------------------------------------------

def test_sources():
    named = put("# a comment\ndsv3_router_gemm=error;deny bmm_fp8\nnothing = warn\n", "named")
    done = run("policy", "show", status=1, SGL_KERNEL_COMPAT_POLICY_FILE=str(named), SGL_KERNEL_COMPAT_POLICY="default=0.4.4; extend * until 2999-01-01 reason r r # c")
    assert done.stdout.splitlines() == [
        "/etc/sgl-kernel-compat/policy: not there", f"{HOME}/.config/sgl-kernel-compat/policy: not there", f"{named}: read",
        "     2  dsv3_router_gemm = error", "     2  deny bmm_fp8",
        "     3  'nothing' is no deleted name of sgl_kernel; sgl-compat policy show --effective lists them",
        "SGL_KERNEL_COMPAT_POLICY: read", "     1  default = 0.4.4", "     1  extend * until 2999-01-01 reason r r # c"], done.stdout
    assert done.stderr == ""
    assert json.loads(run("policy", "show", "--json", "--symbol", "bmm_fp8", status=1, SGL_KERNEL_COMPAT_POLICY_FILE=str(named)).stdout)["sources"][2] == {
        "name": str(named), "state": "read", "problem": None, "directives": [{"line": 2, "directive": "deny bmm_fp8"}],
        "faults": [{"line": 3, "fault": "'nothing' is no deleted name of sgl_kernel; sgl-compat policy show --effective lists them"}]}
    named.chmod(0o666)
    done = run("policy", "show", status=1, SGL_KERNEL_COMPAT_POLICY_FILE=str(named))
    assert f"{named}: not used, it may be written by others; chmod go-w it\n" in done.stdout, done.stdout


def test_effective():
    variables = dict(SLURM_JOB_ID="12", SGL_KERNEL_COMPAT_POLICY="dsv3_router_gemm=silent; ramp * 100% to error; serve dsv3_router_gemm=jit; shadow dsv3_router_gemm first=2")
    done = run("policy", "show", "--effective", **variables)
    names = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert len(names) > 70 and all(re.fullmatch(r"\w+ +(silent|warn|error|tombstone) +\S.*", line) for line in names), done.stdout
    at = done.stdout.splitlines().index("dsv3_router_gemm                          error      SGL_KERNEL_COMPAT_POLICY: ramp 100%, SLURM_JOB_ID=12 is in it")
    assert done.stdout.splitlines()[at + 1 : at + 4] == [
        "    ramp: SGL_KERNEL_COMPAT_POLICY: 100% to error: SLURM_JOB_ID=12 is in it", "    serve: jit: SGL_KERNEL_COMPAT_POLICY",
        "    shadow: first=2 every=0 budget=0 tolerance=0 return=jit: SGL_KERNEL_COMPAT_POLICY"], done.stdout
    row = effective(**variables)
    assert row == {"name": "dsv3_router_gemm", "stage": "error", "set": True, "from": "SGL_KERNEL_COMPAT_POLICY: ramp 100%, SLURM_JOB_ID=12 is in it",
                   "ramp": "SGL_KERNEL_COMPAT_POLICY: 100% to error: SLURM_JOB_ID=12 is in it", "serve": "jit", "serve_from": "SGL_KERNEL_COMPAT_POLICY",
                   "shadow": {"first": 2, "every": 0, "budget": 0, "tolerance": 0.0, "return": "jit", "from": "SGL_KERNEL_COMPAT_POLICY"},
                   "removed_in": "0.4.5", "advice": "use sgl_kernel_jit.dsv3_router_gemm", "answered": True}, row
    assert effective("downcast_fp8", SGL_KERNEL_COMPAT_POLICY="shadow * first=2")["shadow"] is None  # which is not compared
    row = effective(SGL_KERNEL_COMPAT_POLICY="ramp * 100% to error")
    assert row["stage"] == "warn" and not row["set"] and row["ramp"].endswith("nothing here tells the job, so it is not ramped"), row
    gone = dict(SGL_KERNEL_COMPAT_POLICY="gptq_gemm = warn; awq_dequantize = warn")
    assert run("policy", "show", "--effective", "--symbol", "gptq_gemm", **gone).stdout == (
        "gptq_gemm  warn       SGL_KERNEL_COMPAT_POLICY\n    only where an old wheel has it: nothing else answers for it, and so it is a tombstone\n")
    assert run("policy", "show", "--effective", "--symbol", "awq_dequantize", **gone).stdout.count("\n") == 1  # sglang has it
    assert effective("gptq_gemm", **gone)["answered"] is False
    done = run("policy", "show", "--effective", "--symbol", "bmm_fp8", status=1, SGL_KERNEL_COMPAT_POLICY="x=y")
    assert done.stdout == "bmm_fp8  warn       the catalog\n" and done.stderr.startswith("sgl-kernel-compat: SGL_KERNEL_COMPAT_POLICY:1: 'x' is no deleted name"), done


def directive(rng):
    """One directive that speaks of the router, or of another name: (kind, name, value), text."""
    kind, name, stage = rng.choice(("stage", "stage", "default", "deny", "extend", "ramp")), rng.choice(("dsv3_router_gemm", "*", "bmm_fp8")), rng.choice(STAGES)
    release, day, share = rng.choice(("0.4.4", "0.4.10")), rng.choice(("2999-12-31", "2001-01-01")), rng.choice((0, 100))
    value, text = {"stage": (stage, f"{name} = {stage}"), "default": (release, f"default = {release}"), "deny": (True, f"deny {name}"),
                   "extend": (day, f"extend {name} until {day} reason r"), "ramp": ((share, stage), f"ramp {name} {share}% to {stage}")}[kind]
    return (kind, None if kind == "default" else name, value), text


STAGES = ("silent", "warn", "error", "tombstone")


def by_the_manual(sources):
    """What the manual page says of the router in a job that is in a ramp of 100%."""
    def last(kind):
        said = [(source, name != "*", line, value) for source, list in enumerate(sources) for line, (k, name, value) in enumerate(list) if k == kind and name != "bmm_fp8"]
        return max(said, key=lambda one: one[:3]) if said else None

    own, pin, deny, extend, ramp = map(last, ("stage", "default", "deny", "extend", "ramp"))
    stage, newest = STAGES.index(own[3]) if own else 0 if pin and pin[3] == "0.4.4" else 1, own[0] if own else -1
    if ramp and ramp[0] >= newest and ramp[3][0] and STAGES.index(ramp[3][1]) > stage:
        stage, newest = STAGES.index(ramp[3][1]), ramp[0]
    stage = max(stage, 2) if deny else stage
    if extend and extend[0] >= max(newest, deny[0] if deny else -1):
        stage = max(stage, 2) if extend[3] < "2002" else max(stage - 1, 0)
    return STAGES[stage]


def test_sources_that_disagree():
    """Three sources of any directives, the same ones in each run: what comes of them is what the manual page says."""
    rng, folder = random.Random(7), HOME / "xdg" / "sgl-kernel-compat"
    folder.mkdir(parents=True)
    for _ in range(300):
        sources = [[directive(rng) for _ in range(rng.choice((0, 1, 1, 2, 3)))] for _ in range(3)]
        user, named, variable = ("\n".join(text for _, text in source) for source in sources)
        put(user, "xdg/sgl-kernel-compat/policy")
        row = effective(XDG_CONFIG_HOME=str(HOME / "xdg"), SGL_KERNEL_COMPAT_POLICY_FILE=str(put(named, "named")), SGL_KERNEL_COMPAT_POLICY=variable, SGL_KERNEL_COMPAT_JOB="7")
        want = by_the_manual([[one for one, _ in source] for source in sources])
        assert row["stage"] == want, (user, named, variable, row, want)


def test_user_file():
    folder = HOME / ".config/sgl-kernel-compat"
    folder.mkdir(parents=True)
    put("dsv3_router_gemm=error", ".config/sgl-kernel-compat/policy")
    assert effective()["from"] == f"{folder}/policy:1"
    assert effective(XDG_CONFIG_HOME=str(HOME / "other"))["from"] == "the catalog"
    assert effective(XDG_CONFIG_HOME="relative")["from"] == f"{folder}/policy:1"
    shutil.rmtree(folder)


def test_more_rights_than_its_caller():
    """As a setuid program, whose environment is the caller's."""
    if os.geteuid() != 0:
        raise Skip("only root can make such a program for somebody else")
    nobody = pwd.getpwnam("nobody").pw_uid
    for folder in (pathlib.Path("/var/tmp"), HOME):
        work = pathlib.Path(tempfile.mkdtemp(prefix="sgl-setuid-", dir=folder))
        try:
            work.chmod(0o755)
            HOME.chmod(0o755)
            tool = shutil.copy(TOOL, work / "sgl-compat")
            os.chown(tool, nobody, -1)
            pathlib.Path(tool).chmod(0o4755)
            named = work / "named"
            named.write_text("bmm_fp8 = error")
            named.chmod(0o644)
            variables = dict(SGL_KERNEL_COMPAT_POLICY="dsv3_router_gemm = error", SGL_KERNEL_COMPAT_POLICY_FILE=str(named))
            normal = run("policy", "show", "--effective", "--symbol", "bmm_fp8", **variables).stdout
            assert normal == f"bmm_fp8  error      {named}:1\n", normal
            if os.statvfs(work).f_flag & os.ST_NOSUID:
                continue
            out = run("policy", "show", "--effective", tool=tool, **variables).stdout
            assert "SGL_KERNEL_COMPAT_POLICY" not in out and str(named) not in out and "error" not in out, out
            out = run("policy", "show", tool=tool, **variables).stdout
            assert out == "/etc/sgl-kernel-compat/policy: not there\nSGL_KERNEL_COMPAT_POLICY: not there\n", out
            return
        finally:
            shutil.rmtree(work)
    raise Skip("no folder here takes setuid programs")


# --- usage ------------------------------------------------------------------------------------------------------------

def test_usage():
    for arguments, says in [
        ((), "a command is needed"), (("policy",), "unknown command 'policy'"), (("policy", "shw"), "unknown command 'policy shw'"), (("nothing",), "unknown command 'nothing'"),
        (("policy", "check"), "a file is needed"), (("policy", "check", "--fast", "x"), "policy check has no option --fast"),
        (("policy", "show", "x"), "policy show takes no argument 'x'"), (("policy", "show", "--symbol"), "--symbol needs a value"),
        (("policy", "show", "--all"), "policy show has no option --all"), (("policy", "show", "--symbol", "x"), "'x' is no deleted name"),
    ]:
        done = run(*arguments, status=2)
        assert done.stdout == "" and done.stderr.startswith("sgl-compat: ") and says in done.stderr and done.stderr.count("\n") == 1, (arguments, done.stderr)


def test_help():
    top = run("--help").stdout
    man = (ROOT / "docs/sgl-compat.1").read_text().replace("\\-", "-")
    commands = re.findall(r"^  (\w+(?: \w+)?)  +\S", top.partition("commands:")[2].partition("options:")[0], re.M)
    assert {"policy show", "policy check"} <= set(commands), top
    for command in commands:
        text = run(*command.split(), "--help").stdout
        assert text.startswith(f"usage: sgl-compat {command} ") and "exit status:" in text and "examples:" in text, text
        if not command.startswith("policy "):
            continue
        assert f"sgl-compat {command}" in man, command
        for option in re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", text, re.M):
            assert option == "--help" or option in man, (command, option)
        assert max(map(len, text.splitlines())) <= 120
    assert run("-h").stdout == top == run("policy", "--help").stdout
    assert run("--version").stdout.startswith("sgl-compat ")


def test_output_that_does_not_arrive():
    with open("/dev/full", "w") as full:
        done = subprocess.run([TOOL, "policy", "show", "--effective"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and done.stderr == "sgl-compat: standard output: No space left on device\n", done


main(globals())
