#!/usr/bin/env python3
"""The command line: options, messages, exit status, several roots, what fix leaves behind."""
import os, pty, shutil, signal, stat
from pathlib import Path
from tool import ARGS, TOOL, Tree, contains, equal, main, run
import subprocess

CASES = Path(__file__).resolve().parent.parent / "cases"
CATALOG = Path(__file__).resolve().parent.parent.parent / "catalog" / "removals.yaml"
OLD = "from sgl_kernel import dsv3_router_gemm\n"
NEW = "from sgl_kernel_jit import dsv3_router_gemm\n"
OPERATOR = "import torch\ntorch.ops.sgl_kernel.dsv3_router_gemm(a, b, c)\n"
UTF16 = "from sgl_kernel import dsv3_router_gemm\n".encode("utf-16")


def usage(*args, says, **options):
    done = run(*args, **options)
    equal(done.returncode, 8)
    equal(done.out, "")
    equal(done.err.count("\n"), 1)
    contains(done.err, "sgl-migrate: ")
    contains(done.err, says)


def test_help_and_version():
    for args in (["--help"], ["-h"], ["scan", "--help"], ["fix", "x", "-h"]):
        done = run(*args)
        equal((done.returncode, done.err), (0, ""))
        equal(max(len(line) for line in done.out.splitlines()) <= 120, True)
        command = args[0] if len(args[0]) < 5 and args[0] != "-h" else None
        for part in ((f"usage: sgl-migrate {command} [", "--kernel VERSION", "--to ROUTE", "--catalog", "--jobs", "report ") if command
                     else ("usage: sgl-migrate COMMAND", "\n  scan ", "\n  fix ", "exit status", "examples:")):
            contains(done.out, part)
        equal("--format" in done.out.replace("scan --format", ""), command == "scan")
        equal("--changed " in done.out, command == "scan")
        for option in ("--diff ", "--interactive ", "--unsafe ", "--force "):
            equal(option in done.out.replace("fix --diff", ""), command == "fix")
    done = run("--version")
    equal((done.returncode, done.err), (0, ""))
    equal(done.out.split()[0], "sgl-migrate")
    equal(done.out.count("."), 2)


def test_wrong_usage_is_one_line():
    usage(says="a command is needed")
    usage("look", ".", says="unknown command 'look'")
    usage("--look", ".", says="unknown option '--look'")
    usage("scan", says="scan needs at least one path")
    usage("scan", "--frobnicate", ".", says="unknown option --frobnicate")
    usage("scan", "-x", ".", says="unknown option -x")
    usage("scan", "--kernel", says="--kernel needs a value")
    usage("scan", ".", "--kernel", "seven", says="--kernel 'seven': not a release number like 0.4.10, nor a requirements file or site-packages folder\n")
    usage("scan", ".", "--kernel", "", says="--kernel '': not a release number")
    usage("scan", ".", "--to", "", says="--to '': jit or")
    usage("scan", "", says="sgl-migrate: '': No such file or directory\n")
    usage("scan", ".", "--to", "sglang", says="--to 'sglang': jit or sglang@VERSION is needed")
    usage("scan", ".", "--to", "sglang@new", says="--to 'sglang@new': not a release number")
    usage("scan", ".", "--format", "xml", says="--format 'xml': text, sarif, json, github, junit or html is needed")
    usage("fix", ".", "--format", "sarif", says="--format belongs to scan")
    for jobs in ("0", "-1", "x", "4x", "99999"):
        usage("scan", ".", "-j", jobs, says=f"--jobs '{jobs}': a number from 1 to 1024")
    usage("scan", ".", "--catalog", "/nowhere/a.yaml", says="/nowhere/a.yaml")


def test_missing_path_does_nothing():
    with Tree({"a.py": OLD}) as tree:
        for command in ("scan", "fix"):
            usage(command, "a.py", "none", says="none: No such file or directory", cwd=tree.path)
        equal(tree.get("a.py"), OLD)


def test_broken_catalog():
    with Tree({"c.yaml": "symbols: [\n", "d.yaml": "library: 7\n"}) as tree:
        usage("scan", ".", "--catalog", "c.yaml", says="c.yaml", cwd=tree.path)
        usage("scan", ".", "--catalog", "d.yaml", says="d.yaml", cwd=tree.path)


def test_unproved_catalog():
    """What sgl-catalog lint refuses could hide uses: its first fault, and no scan."""
    broken = sorted((CATALOG.parent.parent / "tests" / "catalog" / "data" / "lint").glob("*.yaml"))
    equal(len(broken) > 50, True)
    for catalog in broken:
        line, what = catalog.read_text().split("# expect: ")[1].split("\n")[0].split(": ", 1)
        usage("scan", ".", "--catalog", catalog, says=f"sgl-migrate: {catalog}:{line}: {what}\n")


def test_catalog_file_gives_what_the_built_in_one_gives():
    own = run("scan", *ARGS, CASES / "text")
    loaded = run("scan", *ARGS, "--catalog", CATALOG, CASES / "text")
    equal((loaded.returncode, loaded.out), (own.returncode, own.out))
    equal(own.returncode, 3)


def test_defaults_are_said():
    with Tree({"a": ""}) as tree:
        contains(tree.run("scan", ".").err, "(default), rewriting to jit (default)\n")
        contains(tree.run("scan", "--kernel", "0.4.5", ".").err, "checking against kernel 0.4.5, rewriting to jit (default)\n")
        contains(tree.run("scan", "--to", "sglang@0.5.18", ".").err, "(default), rewriting to sglang@0.5.18\n")
        equal(tree.run("scan", *ARGS, ".").err, "")
        contains(tree.run("scan", "--kernel", "99.1", "--to", "jit", ".").err, "kernel 99.1 is newer than ")
        contains(tree.run("scan", "--kernel", "0.4.6", "--to", "sglang@99.1", ".").err, "sglang 99.1 is newer than ")
        equal(tree.run("scan", "--kernel", "0.4.6+cu130", "--to", "jit", ".").err, "")


def test_scan_status():
    for files, status in (
        ({}, 0),
        ({"a.py": "import os\n"}, 0),
        ({"a.md": "dsv3_router_gemm\n"}, 0),
        ({"a.py": OLD}, 1),
        ({"a.py": OPERATOR}, 3),
        ({"a.py": OLD, "b.py": UTF16}, 5),
        ({"a.md": UTF16}, 4),
        ({"a.md": "nothing".encode("utf-16")}, 0),
    ):
        with Tree(files) as tree:
            equal((list(files), tree.run("scan", *ARGS, ".").returncode), (list(files), status))
            equal((list(files), tree.run("scan", "--format", "sarif", *ARGS, ".").returncode), (list(files), status))


def test_text_lines():
    with Tree({"src/a.py": "# dsv3_router_gemm\n" + OLD, "b.md": "é \U0001f600 dsv3_router_gemm\n"}) as tree:
        done = tree.run("scan", *ARGS, ".")
        lines = [line for line in done.out.splitlines() if not line.startswith("    ")]
        equal([line.split(": ")[:2] for line in lines[:3]],
              [["b.md:1:5", "mention dsv3_router_gemm"], ["src/a.py:1:3", "mention dsv3_router_gemm"],
               ["src/a.py:2:24", "rewrite dsv3_router_gemm"]])
        contains(lines[3], "1 live use in 1 file: 1 to rewrite, 0 for a person; 2 mentions")
        contains(lines[4], "2 files looked at, against kernel 0.4.6, to jit; 0 not analysed, 0 in part")
        equal(len(lines), 5)


def test_every_front_says_when_the_name_left():
    code = "#include <sgl_kernel_ops.h>\nvoid f(at::Tensor& a) { dsv3_router_gemm(a, a, a); }\n"
    with Tree({"a.py": OLD, "b.cc": code, "c.sh": f"python3 -c '{OLD.strip()}'\n", "d.md": "dsv3_router_gemm\n"}) as tree:
        out = tree.run("scan", "--kernel", "0.4.10", "--to", "jit", ".").out
        for place, what in (("a.py:1:24: rewrite", "import it from sgl_kernel_jit"),
                            ("b.cc:2:25: rewrite", "fix makes it sgl_kernel_jit::dsv3_router_gemm"),
                            ("c.sh:1:36: report", "used by a program in this text: change it by hand"),
                            ("d.md:1:1: mention", "named in a text, for information")):
            contains(out, f"{place} dsv3_router_gemm: dsv3_router_gemm left sgl_kernel in 0.4.5; {what}\n")


def test_another_library_is_named():
    with Tree({"a.md": "call acme.zeta\n"}) as tree:
        catalog = CATALOG.parent.parent / "tests" / "catalog" / "data" / "small.yaml"
        out = tree.run("scan", "--kernel", "1.1", "--to", "jit", "--catalog", catalog, ".").out
        contains(out, "a.md:1:11: mention zeta: zeta left acme in 1.1; named in a text, for information\n")


def test_roots():
    with Tree({"a/x.md": "bmm_fp8\n", "b/y.md": "bmm_fp8\n", "b/sub/z.md": "bmm_fp8\n"}) as tree:
        def paths(*roots):
            return [line.split(":")[0] for line in tree.run("scan", *ARGS, *roots).out.splitlines() if ": mention" in line]
        equal(paths("."), ["a/x.md", "b/sub/z.md", "b/y.md"])
        equal(paths("b/", "a"), ["b/sub/z.md", "b/y.md", "a/x.md"])
        equal(paths("b/y.md", "b", "b/sub", "./b/y.md"), ["b/y.md", "b/sub/z.md"])
        equal(paths(tree.path / "a"), [f"{tree.path}/a/x.md"])
        equal(paths("b/sub/../y.md"), ["b/sub/../y.md"])


def test_control_characters_in_a_name():
    with Tree({"a\n\x1b[31m.md": "bmm_fp8\n"}) as tree:
        done = tree.run("scan", *ARGS, ".")
        contains(done.out, "a\\x0a\\x1b[31m.md:1:1: mention bmm_fp8")


def test_not_analysed_is_said():
    with Tree({"u.txt": UTF16, "ok.md": "bmm_fp8\n"}) as tree:
        with open(tree.path / "large.py", "wb") as file:
            file.truncate((64 << 20) + 1)
        for name in ("binary.txt", "data.json"):  # nothing is said of what is no text, or of data
            with open(tree.path / name, "wb") as file:
                file.truncate((64 << 20) + 1)
        for command in ("scan", "fix"):
            done = tree.run(command, *ARGS, "/proc/self/mem", ".")  # a file that even root cannot read
            equal(done.returncode, 4)
            equal(done.err.splitlines(),
                  ["sgl-migrate: /proc/self/mem: not analysed: cannot be read: Input/output error",
                   "sgl-migrate: large.py: not analysed: larger than 64 MiB",
                   "sgl-migrate: u.txt: not analysed: UTF-16 text that has a name of the catalog; convert it to UTF-8"])
            contains(done.out, "3 not analysed")


def test_left_out_folders_are_named():
    with Tree({".venv/a.py": OLD, "ok.py": "", "node_modules/b.py": OLD}) as tree:
        done = tree.run("scan", *ARGS, ".")
        equal(done.returncode, 0)
        contains(done.out, "left out: .venv (virtual environment)\nleft out: node_modules (installed packages)\n")
        equal(tree.run("scan", *ARGS, ".venv").returncode, 1)


def test_fix():
    with Tree({"a.py": OLD, "b.py": OPERATOR + OLD, "c.md": "dsv3_router_gemm\n"}) as tree:
        done = tree.run("fix", *ARGS, ".")
        equal(done.returncode, 3)
        equal(done.err, "")
        contains(done.out, "fixed a.py (")
        contains(done.out, "b.py:2:22: report dsv3_router_gemm: ")
        contains(done.out, "2 files fixed; 1 live use left in 1 file: 0 to rewrite, 1 for a person; 1 mention")
        equal("c.md" in done.out, False)
        equal((tree.get("a.py"), tree.get("b.py")), (NEW, OPERATOR + NEW))
        again = tree.run("fix", *ARGS, ".")
        equal(again.returncode, 3)
        contains(again.out, "0 files fixed; ")
        equal((tree.get("a.py"), tree.get("b.py")), (NEW, OPERATOR + NEW))


def test_fix_of_everything_is_status_0():
    with Tree({"a.py": OLD}) as tree:
        equal(tree.run("fix", *ARGS, "a.py").returncode, 0)
        equal(tree.run("scan", *ARGS, ".").returncode, 0)


def test_fix_of_a_read_only_file():
    """Who may write into it all the same, as root may, gets it fixed, and the mode stays. So does a copy of a read-only tree."""
    with Tree({"a.py": OLD, "b.py": OLD}) as tree:
        (tree.path / "a.py").chmod(0o444)
        done = tree.run("fix", *ARGS, ".")
        if os.geteuid() == 0:
            equal((done.returncode, tree.get("a.py"), tree.get("b.py")), (0, NEW, NEW))
        else:
            equal((done.returncode, tree.get("a.py"), tree.get("b.py")), (17, OLD, NEW))
            contains(done.err, "sgl-migrate: a.py: not fixed: is read-only for you; make it writable and run again\n")
        equal((tree.path / "a.py").stat().st_mode & 0o777, 0o444)
        equal(sorted(p.name for p in tree.path.iterdir()), ["a.py", "b.py"])


def test_fix_through_links():
    with Tree({"src/a.py": OLD}) as tree:
        os.symlink("src/a.py", tree.path / "link.py")
        os.link(tree.path / "src/a.py", tree.path / "hard.py")
        (tree.path / "src/a.py").chmod(0o640)
        done = tree.run("fix", *ARGS, ".")
        equal(done.returncode, 0)
        contains(done.out, "2 files fixed")
        equal((tree.get("src/a.py"), tree.get("hard.py"), tree.get("link.py")), (NEW, NEW, NEW))
        equal((tree.path / "link.py").is_symlink(), True)
        equal(stat.S_IMODE((tree.path / "src/a.py").stat().st_mode), 0o640)


def test_links_to_the_outside_are_named_only():
    with Tree({"root/a.py": OLD, "outside/o.py": OLD}) as tree:
        os.symlink("../outside/o.py", tree.path / "root/l.py")
        os.symlink("nowhere.py", tree.path / "root/dangling.py")
        done = tree.run("fix", *ARGS, "root")
        equal((done.returncode, tree.get("root/a.py"), tree.get("outside/o.py")), (0, NEW, OLD))
        contains(done.out, "left out: root/dangling.py (link to nothing)\nleft out: root/l.py (link to a file outside; name that file on the command line to include it)\n")
        tree.run("fix", *ARGS, "root/l.py")  # named, so meant
        equal((tree.get("outside/o.py"), (tree.path / "root/l.py").is_symlink()), (NEW, True))


FILES = {f"{i:03}.py": OLD for i in range(300)}


def changed(tree):
    return sum(tree.get(path) == NEW for path in FILES)


def test_a_stopped_fix_has_said_what_it_did():
    with Tree(FILES) as tree:
        process = subprocess.Popen([TOOL, "fix", *ARGS, "."], cwd=tree.path, stdout=subprocess.PIPE)
        first = process.stdout.readline()
        process.terminate()
        lines = [first, *process.stdout]
        process.stdout.close()
        equal(process.wait(), -signal.SIGTERM)
        equal((len(lines), 0 < len(lines) < len(FILES)), (changed(tree), True))


def test_a_reader_that_goes_away_does_not_stop_fix():
    with Tree(FILES) as tree:
        process = subprocess.Popen([TOOL, "fix", *ARGS, "."], cwd=tree.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        err = process.stderr.read().decode()
        process.stderr.close()
        equal((process.wait(), err, changed(tree)), (16, "sgl-migrate: standard output: Broken pipe\n", len(FILES)))


def test_output_that_does_not_arrive():
    with open("/dev/full", "w") as full:
        for args in (["--help"], ["scan", *ARGS, CASES / "text"], ["scan", "--format", "sarif", *ARGS, CASES / "text"]):
            done = subprocess.run([TOOL, *map(str, args)], stdout=full, stderr=subprocess.PIPE)
            equal(done.returncode & 16, 16)
            contains(done.stderr.decode(), "sgl-migrate: standard output: ")


def on_terminal(environment):
    main_end, end = pty.openpty()
    with Tree({"a.md": "bmm_fp8\n"}) as tree:
        subprocess.run([TOOL, "scan", *ARGS, "."], cwd=tree.path, stdout=end, stderr=subprocess.DEVNULL, env=environment)
    os.close(end)
    text = os.read(main_end, 65536).decode()
    os.close(main_end)
    return text


def test_colour_on_a_terminal_only():
    plain = {**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm"}
    contains(on_terminal(plain), "\x1b[")
    equal("\x1b[" in on_terminal({**plain, "NO_COLOR": "1"}), False)
    equal("\x1b[" in on_terminal({**plain, "TERM": "dumb"}), False)
    equal("\x1b[" in run("scan", *ARGS, CASES / "text").out, False)


def test_workers_do_not_change_the_output():
    with Tree() as tree:
        shutil.copytree(CASES, tree.path / "cases", symlinks=True)
        for options in ([], ["--format", "sarif"]):
            first, *others = [tree.run("scan", *options, *ARGS, "-j", jobs, ".") for jobs in (1, 2, 8, 8)]
            for other in others:
                equal((other.returncode, other.err, other.out == first.out), (first.returncode, first.err, True))
            equal(len(first.out) > 1000, True)


main(globals())
