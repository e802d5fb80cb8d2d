#!/usr/bin/env python3
"""Baselines: accepted uses are found again when lines and files move; new and stale ones are said."""
import json, os, shutil, stat
from pathlib import Path
from tool import ARGS, Tree, contains, equal, main

CASES = Path(__file__).resolve().parent.parent / "cases"
NAME, OTHER = "dsv3_router_gemm", "dsv3_fused_a_gemm"
USE = f"from sgl_kernel import {NAME}\n"
FIRST = "# sgl-migrate baseline 1\n"


def write(tree, *paths):
    done = tree.run("scan", *ARGS, "--write-baseline", "base.txt", *(paths or ["."]))
    equal(done.returncode & ~4, 0)
    return done


def compare(tree, *extra):
    """Exit status, new uses as "path:line", accepted ones likewise, stale ones as "path: text"."""
    done = tree.run("scan", "--format", "json", *ARGS, "--baseline", "base.txt", *extra, ".")
    log = json.loads(done.stdout)
    place = lambda f: f"{f['path']}:{f['line']}"
    live = [f for f in log["findings"] if f["verdict"] != "mention"]
    return (done.returncode, [place(f) for f in live if f["standing"] == "open"], [place(f) for f in live if f["standing"] == "baseline"],
            [f"{t['path']}: {t['text']}" for t in log["troubles"] if t["kind"] == "stale"])


def test_written_and_accepted():
    with Tree({"src/a.py": USE, "b.py": "import torch\ntorch.ops.sgl_kernel.bmm_fp8(1)\n", "m.md": NAME + "\n"}) as tree:
        done = write(tree)
        equal((done.returncode, done.err), (0, "sgl-migrate: base.txt: baseline with 2 uses written\n"))
        contains(done.out, "0 live uses in 0 files: 0 to rewrite, 0 for a person; 1 mention; 2 in the baseline\n")
        contains(tree.run("scan", *ARGS, "--baseline", "base.txt", ".").out, "; 1 mention; ")  # its own lines are none
        lines = tree.get("base.txt").splitlines()
        equal((lines[0] + "\n", len(lines)), (FIRST, 5))
        equal([line.split("\t")[0] for line in lines[3:]], ["1", "1"])
        equal([line.split("\t")[2:] for line in lines[3:]], [["bmm_fp8", "b.py", "torch.ops.sgl_kernel.bmm_fp8(1)"], [NAME, "src/a.py", USE.strip()]])
        equal(compare(tree), (0, [], ["b.py:2", "src/a.py:1"], []))
        before = tree.get("base.txt")
        write(tree)
        equal(tree.get("base.txt"), before)


def test_lines_move():
    with Tree({"a.py": USE + "x = 1\n" + USE}) as tree:
        write(tree)
        for content, accepted in (
            ("# new\n\n" + USE + "x = 1\n" + USE, [3, 5]),
            (f"def f():\n    from  sgl_kernel   import {NAME}  # a comment\n{USE}", [2, 3]),
            (USE.replace("\n", "\r\n") * 2, [1, 2]),
        ):
            tree.put("a.py", content)
            equal((content, compare(tree)), (content, (0, [], [f"a.py:{line}" for line in accepted], [])))


def test_new_and_stale():
    with Tree({"a.py": USE + USE, "b.py": USE}) as tree:
        write(tree)
        tree.put("c.py", USE)
        equal(compare(tree), (1, ["c.py:1"], ["a.py:1", "a.py:2", "b.py:1"], []))
        tree.put("a.py", USE)
        tree.put("b.py", "x = 1\n")
        stale = [f"{path}: base.txt:{line}: 1 use of {NAME} fewer than accepted; write the baseline again" for path, line in (("a.py", 4), ("b.py", 5))]
        equal(compare(tree), (33, ["c.py:1"], ["a.py:1"], stale))
        (tree.path / "c.py").unlink()
        done = tree.run("scan", *ARGS, "--baseline", "base.txt", ".")
        equal(done.returncode, 32)
        equal(done.err, "".join(f"sgl-migrate: {s.replace(': ', ': stale in the baseline: ', 1)}\n" for s in stale))
        tree.put("a.py", USE * 3)  # of three equal lines two were accepted
        equal(compare(tree)[:3], (33, ["a.py:3"], ["a.py:1", "a.py:2"]))


def test_another_use_in_the_same_line_is_new():
    with Tree({"a.py": USE}) as tree:
        write(tree)
        tree.put("a.py", USE.replace("\n", f", {OTHER}\n"))
        status, new, accepted, stale = compare(tree)
        equal((status, new, accepted, len(stale)), (33, ["a.py:1", "a.py:1"], [], 1))  # the line is another one


def test_files_move():
    with Tree({"old/a.py": USE, "old/b.py": USE, "keep.py": USE}) as tree:
        write(tree)
        shutil.move(tree.path / "old", tree.path / "new")
        equal(compare(tree), (0, [], ["keep.py:1", "new/a.py:1", "new/b.py:1"], []))
        contains(tree.run("scan", *ARGS, "--baseline", "base.txt", ".").out, "; 3 in the baseline (2 in moved files)\n")
        shutil.move(tree.path / "new/a.py", tree.path / "renamed.py")
        equal(compare(tree), (0, [], ["keep.py:1", "new/b.py:1", "renamed.py:1"], []))
        tree.put("copy.py", USE)  # a copy of a file that is still there is new
        shutil.move(tree.path / "renamed.py", tree.path / "old" / "a.py") if (tree.path / "old").is_dir() else (os.mkdir(tree.path / "old"), shutil.move(tree.path / "renamed.py", tree.path / "old/a.py"))
        shutil.move(tree.path / "new/b.py", tree.path / "old/b.py")
        equal(compare(tree), (1, ["copy.py:1"], ["keep.py:1", "old/a.py:1", "old/b.py:1"], []))


def test_of_files_of_the_same_name_the_moved_one_is_accepted():
    with Tree({"x/model.py": USE}) as tree:
        write(tree)
        shutil.move(tree.path / "x", tree.path / "z")
        tree.put("a.py", USE)
        equal(compare(tree), (1, ["a.py:1"], ["z/model.py:1"], []))


def test_ignored_uses_are_not_in_it():
    with Tree({"a.py": USE.replace("\n", f"  # sgl-migrate: ignore[{NAME}]\n") + USE}) as tree:
        write(tree)
        contains(tree.get("base.txt"), "\n1\t")
        equal(compare(tree), (0, [], ["a.py:2"], []))


def test_a_name_that_the_kernel_still_has_is_not_stale():
    with Tree({"a.py": f"from sgl_kernel import {NAME}\n"}) as tree:
        equal(tree.run("scan", "--kernel", "0.4.6", "--to", "jit", "--write-baseline", "base", ".").returncode, 0)
        equal(tree.run("scan", "--kernel", "0.4.4", "--to", "jit", "--baseline", "base", ".").returncode, 0)
        tree.put("a.py", "x = 1\n")
        equal(tree.run("scan", "--kernel", "0.4.6", "--to", "jit", "--baseline", "base", ".").returncode, 32)


def test_a_file_that_cannot_be_analysed_is_not_stale():
    with Tree({"a.py": USE, "b.py": USE}) as tree:
        write(tree)
        tree.put("a.py", USE.encode("utf-16"))
        equal(compare(tree), (4, [], ["b.py:1"], []))


def test_notebooks():
    def notebook(*lines):
        return json.dumps({"cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": list(lines)}],
                           "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
    with Tree({"a.ipynb": notebook("import os\n", USE.strip())}) as tree:
        write(tree)
        tree.put("a.ipynb", notebook("import os\n", "\n", USE, "x = 1"))
        status, new, accepted, stale = compare(tree)
        equal((status, new, len(accepted), stale), (0, [], 1, []))


def test_hostile_names():
    name = "a\tb\n\x1b\\x41\u202e.py"
    with Tree({name: USE + f"\timport sgl_kernel; sgl_kernel.{NAME}\n", os.fsdecode(b"raw\xff.py"): USE}) as tree:
        write(tree)
        text = tree.get("base.txt")
        equal(len(text.splitlines()), text.count("\n"))
        contains(text, "a\\x09b\\x0a\\x1b\\x5cx41\u202e.py")
        contains(text, "raw\\xff.py")
        equal(compare(tree)[0:2] + compare(tree)[3:], (4, [], []))


def test_all_cases_are_accepted():
    with Tree() as tree:
        args = ["scan", *ARGS, CASES]
        equal(tree.run(*args, "--write-baseline", "base.txt").returncode & ~4, 0)
        equal(tree.run(*args, "--baseline", "base.txt").returncode & ~4, 0)


def test_faults():
    good = f"1\t{'0' * 32}\t{NAME}\ta.py\tx\n"
    for text, faults in (
        ("", ["1: this is no baseline: its first line is not '# sgl-migrate baseline 1'"]),
        ("{}\n", ["1: this is no baseline: its first line is not '# sgl-migrate baseline 1'"]),
        (FIRST.replace("1", "2") + "x\n", ["1: this is no baseline: its first line is not '# sgl-migrate baseline 1'"]),
        (FIRST + "x\n" + good + good, ["2: count, fingerprint, name and path are expected, with tabs between",
                                       "4: the same entry stands above: write one line with the sum"]),
        (FIRST + "<<<<<<< HEAD\n" + good + "=======\n>>>>>>> other\n", [f"{n}: the mark of a merge conflict: solve it, or write the baseline again" for n in (2, 4, 5)]),
        (FIRST + good.replace("1\t", "0\t", 1), ["2: the count is no number from 1 to 1000000"]),
        (FIRST + good.replace("1\t", "-1\t", 1), ["2: the count is no number from 1 to 1000000"]),
        (FIRST + good.replace("0" * 32, "0" * 31), ["2: the fingerprint is not 32 hexadecimal digits"]),
        (FIRST + good.replace(NAME, ""), ["2: the name is empty"]),
        *((FIRST + good.replace("a.py", path), ["2: the path is not one below the root"]) for path in ("", "/a.py", "../a.py", "a/../../b", "a\\", "a\\x0", "a\\x00", "a\\n")),
        (FIRST + "1\t\0\n", ["2: a NUL byte: this is no text"]),
    ):
        with Tree({"base.txt": text, "a.py": ""}) as tree:
            done = tree.run("scan", *ARGS, "--baseline", "base.txt", ".")
            equal((text, done.returncode, done.out, done.err), (text, 8, "", "".join(f"sgl-migrate: base.txt:{fault}\n" for fault in faults)))
    with Tree({"base.txt": FIRST + "x\n" * 50, "a.py": ""}) as tree:
        done = tree.run("scan", *ARGS, "--baseline", "base.txt", ".")
        equal((done.err.count("\n"), done.err.splitlines()[-1]), (21, "sgl-migrate: base.txt: 30 more faults"))
    with Tree({"base.txt": (FIRST + "# a comment\n\n" + good).replace("\n", "\r\n"), "a.py": ""}) as tree:
        equal(tree.run("scan", *ARGS, "--baseline", "base.txt", ".").returncode, 32)


def test_usage():
    with Tree({"a.py": USE, "base.txt": FIRST, "b/x.py": ""}) as tree:
        for args, says in (
            (["--baseline", "none.txt", "."], "none.txt: cannot be read: No such file or directory"),
            (["--baseline", "b", "."], "b: is no regular file"),
            (["--baseline", "base.txt", "a.py"], "--baseline needs one folder as PATH"),
            (["--write-baseline", "base.txt", ".", "b"], "--write-baseline needs one folder as PATH"),
            (["--baseline", "base.txt", "--write-baseline", "base.txt", "."], "--write-baseline accepts what is there now: leave --baseline out"),
        ):
            done = tree.run("scan", *ARGS, *args)
            equal((done.returncode, done.out, done.err.count("\n")), (8, "", 1))
            contains(done.err, f"sgl-migrate: {says}")
        done = tree.run("fix", *ARGS, "--baseline", "base.txt", ".")
        equal((done.returncode, done.err), (8, "sgl-migrate: --baseline belongs to scan\n"))


def test_writing_fails():
    with Tree({"a.py": USE, "d/x": ""}) as tree:
        for path, why in (("none/base.txt", "cannot be written: No such file or directory"), ("d", "is no regular file"), ("/dev/full", "is no regular file")):
            done = tree.run("scan", *ARGS, "--write-baseline", path, ".")
            equal((done.returncode, done.err), (17, f"sgl-migrate: {path}: {why}\n"))
        equal(sorted(p.name for p in tree.path.iterdir()), ["a.py", "d"])


def test_what_is_replaced_stays_what_it_was():
    with Tree({"a.py": USE, "real.txt": ""}) as tree:
        os.symlink("real.txt", tree.path / "base.txt")
        (tree.path / "real.txt").chmod(0o640)
        write(tree)
        equal(((tree.path / "base.txt").is_symlink(), stat.S_IMODE((tree.path / "real.txt").stat().st_mode)), (True, 0o640))
        contains(tree.get("real.txt"), NAME)


def test_other_forms_say_it():
    with Tree({"a.py": USE, "b.py": USE}) as tree:
        write(tree)
        tree.put("b.py", f"from sgl_kernel import {OTHER}\n")
        scan = lambda form: tree.run("scan", "--format", form, *ARGS, "--baseline", "base.txt", ".").out
        run = json.loads(scan("sarif"))["runs"][0]
        equal([(r["baselineState"], "suppressions" in r) for r in run["results"]], [("unchanged", True), ("new", False)])
        equal([n["descriptor"]["id"] for n in run["invocations"][0]["toolConfigurationNotifications"]], ["stale"])
        equal(json.loads(scan("json"))["baseline"], {"file": "base.txt", "accepted": 2, "found": 1, "moved": 0})
        contains(scan("html"), '<b class="good">1 gone</b> of 2, 1 left (0 of them in moved files), <b class="bad">1 new</b>')
        contains(scan("html"), f'<tr><td><code>{NAME}</code></td><td class="n">2</td><td class="n">1</td><td class="n">0</td><td class="n">1</td></tr>')
        contains(scan("junit"), 'tests="3" failures="1" errors="1" skipped="1"')
        contains(scan("github"), "::warning file=b.py,title=stale in the baseline::base.txt:5: 1 use of")


main(globals())
