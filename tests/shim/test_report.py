#!/usr/bin/env python3
"""sgl-compat report: a job of 128 processes that write their statistics into one folder, and files that are made here."""
import html.parser, json, os, pathlib, re, subprocess, sys, tempfile, zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from suite import main

BUILD = pathlib.Path(os.environ["BUILD_DIR"]).resolve()
TOOL, LIBRARY, JOB = BUILD / "bin/sgl-compat", BUILD / "lib/libsgl_kernel_compat.so", BUILD / "tests/shim/fake_job.so"
RANKS, CALLS = 128, 100


def report(*arguments, status=0, cwd=None):
    done = subprocess.run([TOOL, "report", *map(str, arguments)], capture_output=True, text=True, timeout=60, cwd=cwd)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    assert "Sanitizer" not in done.stderr, done.stderr
    return done


def header(**more):
    return {"schema": "sgl-kernel-compat-usage/1", "version": "0.1.0", "package": "sgl_kernel", "host": "node1", "pid": 7,
            "written": 1764547200, "job": "SLURM_JOB_ID=12", "rank": "0", "program": "/usr/bin/python3", **more}


def use(symbol="dsv3_router_gemm", face="python", calls=(("warn", 3),), first=1764500000, **more):
    return {"symbol": symbol, "face": face, "calls": dict(calls), "first": first, "removed_in": "0.4.5", **more}


class Folder(tempfile.TemporaryDirectory):
    def __enter__(self):
        self.path = pathlib.Path(super().__enter__())
        return self

    def put(self, name, *lines):
        """A file; a header without them gets the start of a process of its own, and the number of lines."""
        if lines and isinstance(lines[0], dict):
            lines = ({"start": zlib.crc32(name.encode()), "lines": len(lines) - 1, **lines[0]}, *lines[1:])
        (self.path / name).write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
        return self.path / name


def test_a_job_of_128_processes():
    """Each is forked with the variables of its rank, calls the C++ function and ends; half of them call another one too."""
    with Folder() as folder:
        stats = folder.path / "stats"
        code = f"""import ctypes, os
ctypes.CDLL({str(LIBRARY)!r}, mode=ctypes.RTLD_GLOBAL)
library = ctypes.CDLL({str(JOB)!r})
for rank in range({RANKS}):
    if os.fork() == 0:
        os.environ.update(RANK=str(rank), SLURM_JOB_ID="77" if rank < 64 else "78")
        library.job_rank(rank, {CALLS})
        os._exit(1)
while True:
    try:
        assert os.wait()[1] == 0
    except ChildProcessError:
        break
"""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("SGL_", "SLURM_"))}
        environment.update(SGL_KERNEL_COMPAT_STATS=str(stats), SGL_KERNEL_COMPAT_WARN="off")
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and not done.stderr, (done.returncode, done.stderr)
        names = sorted(p.name for p in stats.iterdir())
        assert len([n for n in names if n.endswith(".jsonl")]) == RANKS == len([n for n in names if n.endswith(".prom")]), names
        assert len(names) == 2 * RANKS, names
        tree = json.loads(report("--json", *stats.glob("*.jsonl")).stdout)
        router, bmm = tree["symbols"]["dsv3_router_gemm"], tree["symbols"]["bmm_fp8"]
        assert tree["processes"] == RANKS and set(tree["jobs"]) == {"SLURM_JOB_ID=77", "SLURM_JOB_ID=78"}, tree
        assert router["calls"] == router["failed"] == RANKS * CALLS and router["faces"] == {"cxx": RANKS * CALLS}, router
        assert router["processes"] == RANKS and router["jobs"] == 2 and bmm["processes"] == RANKS // 2, (router, bmm)
        assert bmm["calls"] == RANKS // 2 and len(router["callers"]) == 1, (router, bmm)
        assert re.fullmatch(r"fake_job\.so\+0x[0-9a-f]+ \(job_rank\)", router["callers"][0]["place"]), router
        assert "dsv3_fused_a_gemm" in tree["unused"] and "bmm_fp8" not in tree["unused"]
        assert json.loads(report("--json", stats).stdout) == tree  # the folder's name is enough
        assert json.loads(report("--json", stats, *stats.glob("*.jsonl")).stdout) == tree  # each file counts once
        series = [line.split("{")[1] for p in stats.glob("*.prom") for line in p.read_text().splitlines() if line.startswith("sgl_kernel_compat_calls")]
        labels = [line[:line.rindex("}")] for line in series]
        assert len(labels) == len(set(labels)) == RANKS + RANKS // 2  # a collector takes all files together
        table = report(stats).stdout
        assert router["job_names"] == ["SLURM_JOB_ID=77", "SLURM_JOB_ID=78"] and "    jobs: SLURM_JOB_ID=77, SLURM_JOB_ID=78\n" in table, table
        assert f"{RANKS} processes of 2 jobs on 1 host" in table and "Replays of captured graphs are not seen" in table, table
        assert re.search(rf"dsv3_router_gemm +0\.4\.5 +warn +{RANKS * CALLS} +{RANKS * CALLS} +128 of 128 .* no: in use", table), table


def test_the_table():
    with Folder() as folder:
        one = folder.put("one.jsonl", header(),
                         use(calls=[("warn", 3), ("silent", 2)], caller={"module": "model.layers", "file": "/srv/m/layers.py", "line": 12}),
                         use(face="operator", calls=[("warn", 10)], failed=1, first=1764400000),
                         use(face="operator", calls=[], samples=4, caller={"module": "model.moe", "file": "/srv/m/moe.py", "line": 7}),
                         use("awq_dequantize", calls=[("error", 1)], first=1764460000),
                         {"kernel": "dsv3_router_gemm:256x7168:float32", "calls": 10},
                         {"shadow": "dsv3_router_gemm", "calls": 10, "matches": 2, "mismatches": 1, "ignored": 0, "over_budget": 7, "errors": 0},
                         {"shadow": "bmm_fp8", "calls": 0, "matches": 0, "mismatches": 0, "ignored": 0, "over_budget": 0, "errors": 0})
        two = folder.put("two.jsonl", header(host="node2", rank="1", written=1764633600, job=""),
                         use(calls=[("warn", 4)], caller={"module": "model.layers", "file": "/srv/m/layers.py", "line": 12}),
                         {"kernel": "dsv3_router_gemm:256x7168:float32", "calls": 1})
        done = report(one, two)
        want = """\
2 processes of 2 jobs on 2 hosts, written 2025-12-01 to 2025-12-02 (UTC). Replays of captured graphs are not seen.

symbol            removed in  stage                 uses    failed  processes     first       last        ready to delete
awq_dequantize    0.4.5       error                    1         0  1 of 2        2025-11-29  2025-12-01  no: it is asked for, and fails
    python  an unknown place: 1, in 1 process
    job: SLURM_JOB_ID=12
dsv3_router_gemm  0.4.5       silent, warn            19         1  2 of 2        2025-11-29  2025-12-02  no: in use
    operator  through torch's dispatcher: 10, in 1 process
    python  layers.py:12 (model.layers): 9, in 2 processes
    operator  moe.py:7 (model.moe): 4 of the sampled calls, in 1 process
    job: SLURM_JOB_ID=12

kernels that ran (sgl-jit warm --stats compiles them ahead):
    dsv3_router_gemm:256x7168:float32: 11

shadow comparisons:
    bmm_fp8: nothing was compared: 0 matched, 0 did not, 0 ignored, 0 over the budget, 0 errors, of 0 calls
    dsv3_router_gemm: 2 matched, 1 did not, 0 ignored, 7 over the budget, 0 errors, of 10 calls

ready to delete, not used by any of these processes: """
        assert done.stdout.startswith(want), done.stdout
        assert report(two, one).stdout == done.stdout  # the order of the files does not matter


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.links = [], "", []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.links += [value for name, value in attributes if name in ("href", "src")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data


def test_the_page():
    with Folder() as folder:
        one = folder.put("one.jsonl", header(), use(caller={"module": "<script>alert(1)</script>", "file": "/srv/\"&<x>.py", "line": 1}),
                         {"kernel": "dsv3_router_gemm:256x7168:float32", "calls": 10},
                         {"shadow": "bmm_fp8", "calls": 0, "matches": 0, "mismatches": 0, "ignored": 0, "over_budget": 0, "errors": 0})
        page = folder.path / "page.html"
        done = report("--html", page, one)
        text = page.read_text()
        parsed = Page(text)
        assert not parsed.links and "<script" not in text and "http" not in text, text
        for part in ("dsv3_router_gemm", "\"&<x>.py:1 (<script>alert(1)</script>): 3, in 1 process", "no: in use", "Ready to delete",
                     "awq_dequantize", "dsv3_router_gemm:256x7168:float32", "nothing was compared", "Replays of captured graphs"):
            assert part in parsed.text, (part, parsed.text)
        assert done.stdout == report(one).stdout
        done = report("--html", folder.path / "no" / "page.html", one, status=1)
        assert "--html" in done.stderr and "No such file or directory" in done.stderr, done.stderr


def test_faults():
    """Each is named, and the rest is reported."""
    with Folder() as folder:
        good = folder.put("good.jsonl", header(), use())
        row = use("bmm_fp8")
        for name, lines, why in (
                ("empty", [], "empty.jsonl:1: no file of statistics: it is empty"),
                ("other", [{"schema": "sgl-kernel-compat-usage/2"}], "other.jsonl:1: statistics of another version than sgl-kernel-compat-usage/1"),
                ("foreign", ["{}\n"], "foreign.jsonl:1: no file of statistics: its first line has no schema"),
                ("package", [header(package="vllm")], "package.jsonl:1: statistics of another package than sgl_kernel"),
                ("pid", [header(pid=-1)], "pid.jsonl:1: pid is no number from 0 on"),
                ("host", [header(host=None)], "host.jsonl:1: host is no string"),
                ("written", [header(written=0)], "written.jsonl:1: written is no time in seconds since 1970"),
                ("late", [header(written=2**62)], "late.jsonl:1: written is no time in seconds since 1970"),
                ("lines", [header(lines="1"), row], "lines.jsonl:1: lines is no number from 0 on"),
                ("cut", [header(), row, '{"symbol":"dsv3'], "cut.jsonl:3: no line of statistics: "),
                ("shorter", [header(lines=2), row], "shorter.jsonl:3: 1 lines follow the first, and should be 2: a copy that was cut?"),
                ("list", [header(), "[]\n"], "list.jsonl:2: no line of statistics: it is no JSON object"),
                ("twice", [header(), '{"symbol":"bmm_fp8","symbol":"x"}\n'], "twice.jsonl:2: no line of statistics: duplicate object key"),
                ("without", [header(), {"symbol": "bmm_fp8"}], "without.jsonl:2: no line of statistics: face is none of cxx, operator, python"),
                ("unknown", [header(), dict(row, symbol="x\x1b")], "unknown.jsonl:2: no line of statistics: 'x?' is no deleted name of sgl_kernel that this release knows"),
                ("symbol", [header(), dict(row, symbol=7)], "symbol.jsonl:2: no line of statistics: symbol is no string"),
                ("calls", [header(), dict(row, calls=7)], "calls.jsonl:2: no line of statistics: calls is no object"),
                ("negative", [header(), dict(row, calls={"warn": -3})], "negative.jsonl:2: no line of statistics: warn is no number from 0 on"),
                ("real", [header(), dict(row, calls={"warn": 3.5})], "real.jsonl:2: no line of statistics: warn is no number from 0 on"),
                ("stage", [header(), dict(row, calls={"wran": 3})], "stage.jsonl:2: no line of statistics: 'wran' is no stage"),
                ("failed", [header(), dict(row, failed=-1)], "failed.jsonl:2: no line of statistics: failed is no number from 0 on"),
                ("samples", [header(), dict(row, samples="1")], "samples.jsonl:2: no line of statistics: samples is no number from 0 on"),
                ("first", [header(), dict(row, first="now")], "first.jsonl:2: no line of statistics: first is no time in seconds since 1970"),
                ("removed", [header(), dict(row, removed_in=4)], "removed.jsonl:2: no line of statistics: removed_in is no string"),
                ("caller", [header(), dict(row, caller=[])], "caller.jsonl:2: no line of statistics: caller has no file"),
                ("line", [header(), dict(row, caller={"file": "x", "line": -1})], "line.jsonl:2: no line of statistics: line is no number from 0 on"),
                ("module", [header(), dict(row, caller={"file": "x", "line": 1, "module": 5})], "module.jsonl:2: no line of statistics: caller: module is no string"),
                ("big", [header(), f'{{"kernel":"x","calls":{2**63}}}\n'], "big.jsonl:2: no line of statistics: too big integer"),
                ("kernel", [header(), {"kernel": 5, "calls": 1}], "kernel.jsonl:2: no line of statistics: kernel is no string"),
                ("shadow", [header(), {"shadow": "bmm_fp8", "calls": 1}], "shadow.jsonl:2: no line of statistics: matches is no number from 0 on"),
                ("hidden", [header(), {"not_counted": "bmm_fp8", "faces": []}], "hidden.jsonl:2: no line of statistics: faces is no list with a face"),
                ("faces", [header(), {"not_counted": "bmm_fp8", "faces": ["x"]}], "faces.jsonl:2: no line of statistics: faces has something else")):
            bad = folder.put(f"{name}.jsonl", *lines)
            done = report("--json", bad, good, status=1)
            assert why in done.stderr and len(done.stderr.splitlines()) == 1, (name, done.stderr)
            tree = json.loads(done.stdout)
            assert tree["symbols"]["dsv3_router_gemm"]["calls"] == 3 and tree["complete"] is False, name
            done = report("--html", folder.path / "page.html", bad, good, status=1)
            assert "since something could not be read" in done.stdout and "ready to delete, not used" not in done.stdout, name
            assert "since something could not be read" in (folder.path / "page.html").read_text() and "Ready to delete" not in (folder.path / "page.html").read_text(), name
        assert json.loads(report("--json", good).stdout)["complete"] is True
        many = folder.put("many.jsonl", header(), *("x\n" for _ in range(100)))
        done = report(many, status=1)
        assert done.stderr.count("no line of statistics") == 5 and done.stderr.endswith("many.jsonl: 95 more faults\n"), done.stderr
        done = report(folder.path / "none.jsonl", status=1)
        assert "none.jsonl: No such file or directory" in done.stderr and "nothing is known of any name" in done.stdout, done
        assert "would be written over statistics" in report("--html", good, good, status=2).stderr and good.read_text()
        for arguments in ((), ("--html",), ("--loud", good)):
            assert "see sgl-compat report --help" in report(*arguments, status=2).stderr


def test_counts_that_overflow():
    with Folder() as folder:
        most = 2**63 - 1
        files = [folder.put(f"{n}.jsonl", header(), use(calls=[("warn", most)])) for n in range(2)]
        done = report("--json", *files, status=1)
        assert json.loads(done.stdout)["symbols"]["dsv3_router_gemm"]["calls"] == most, done.stdout
        assert "1.jsonl:2: the counts add up to more than a number holds" in done.stderr, done.stderr


def test_many_jobs():
    with Folder() as folder:
        files = [folder.put(f"{n}.jsonl", header(job=f"<{n}>" + "é" * 400), use()) for n in range(9)]
        out = report("--html", folder.path / "page.html", *files).stdout
        assert f"    jobs: <0>{'é' * 148}, <1>{'é' * 148}, <2>{'é' * 148}, <3>{'é' * 148} and 5 others\n" in out, out
        assert "jobs: <0>éé" in Page((folder.path / "page.html").read_text()).text


def test_a_process_counts_once():
    """Copies of several days: its newest file has all that the older ones had. Another start is another process."""
    with Folder() as folder:
        old = folder.put("old.jsonl", header(start=5), use(calls=[("warn", 3)]))
        new = folder.put("new.jsonl", header(start=5, written=1764547300), use(calls=[("warn", 4)]))
        other = folder.put("other.jsonl", header(start=6), use(calls=[("warn", 10)]))
        for files in ((old, new, other), (other, new, old)):
            tree = json.loads(report("--json", *files).stdout)
            assert tree["processes"] == 2 and tree["symbols"]["dsv3_router_gemm"]["calls"] == 14, tree


def test_what_is_not_counted():
    """A name that an installed package serves itself is not called unused."""
    with Folder() as folder:
        hidden = folder.put("one.jsonl", header(), use(), {"not_counted": "bmm_fp8", "faces": ["python", "operator"]}, {"not_counted": "dsv3_router_gemm", "faces": ["operator"]})
        other = folder.put("two.jsonl", header(), {"not_counted": "bmm_fp8", "faces": ["operator"]}, {"kernels_lost": 5}, {"kernel": "dsv3_router_gemm:16x256:float32", "calls": 1})
        tree = json.loads(report("--json", hidden, other).stdout)
        assert "bmm_fp8" not in tree["unused"] and len(tree["unused"]) == 74 and tree["kernels_lost"] == 5, tree
        assert tree["not_counted"]["bmm_fp8"] == {"faces": {"operator": True, "python": True}, "processes": 2}, tree
        done = report("--html", folder.path / "page.html", hidden, other)
        assert "\n    bmm_fp8: operator, python, in 2 processes\n    dsv3_router_gemm: operator, in 1 process\n" in done.stdout, done.stdout
        assert "others, of processes with more than 256: 5" in done.stdout and "ready to delete, not used by any of these processes: 74 names" in done.stdout, done.stdout
        page = Page((folder.path / "page.html").read_text()).text
        assert "Not known" in page and "operator, python" in page and "others, of processes" in page, page


def test_odd_files():
    """Names of files and callers with odd characters, a pipe, what is no file, and a folder with nothing in it."""
    with Folder() as folder:
        long = "é" * 3000
        odd = folder.put("o\n\x1b[31m<b>\x7f.jsonl", header(host="h\x1b]0;x", job="<i>\n"), use(caller={"module": "m", "file": f"/srv/{long}.py", "line": 1}),
                         use(calls=[("warn", 1)], caller={"module": "m\x1b[2J\x9b2J", "file": "x\n.py", "line": 1}))
        done = report("--html", folder.path / "page.html", odd)
        control = set(map(chr, (*range(10), *range(11, 32), *range(127, 160))))
        assert not control & set(done.stdout) and "(m\\x1b[2J\\x9b2J)" in done.stdout, done.stdout
        bad = folder.put("\x9b\x1b.jsonl", "{}\n")
        assert not control & set(report(bad, status=1).stderr)
        Page((folder.path / "page.html").read_text())
        tree = json.loads(report("--json", odd).stdout)
        assert long in tree["symbols"]["dsv3_router_gemm"]["callers"][0]["place"], tree
        piped = subprocess.run([TOOL, "report", "--json", "/dev/stdin"], input=odd.read_text(), capture_output=True, text=True, timeout=60)
        assert json.loads(piped.stdout) == tree and piped.returncode == 0, piped
        (folder.path / "stats").mkdir()
        done = report(folder.path / "stats")
        assert done.stdout == "0 processes of 0 jobs on 0 hosts, written - to - (UTC). Replays of captured graphs are not seen.\n\nno process: nothing is known of any name\n", done.stdout
        os.mkfifo(folder.path / "stats" / "x.jsonl")
        (folder.path / "stats" / "y.jsonl").mkdir()
        done = report(folder.path / "stats", status=1)
        assert done.stderr.count("it is no file\n") == 2, done.stderr


def test_help_and_the_man_page():
    text = report("--help").stdout
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "sgl-compat.1").read_text().replace("\\-", "-")
    options = set(re.findall(r"^ .*(--[a-z-]+)", text, re.M))
    assert options == {"--html", "--json", "--help"} and all(option in page for option in options), options
    listed = subprocess.run([TOOL, "--help"], capture_output=True, text=True, timeout=60).stdout
    assert re.search(r"^  report  +who still uses what", listed, re.M), listed


main(globals())
