#!/usr/bin/env python3
"""--shard and merge: the logs of all shards give the log of the whole scan, byte for byte."""
import json, os, subprocess
from pathlib import Path
from tool import ARGS, Tree, contains, equal, main

CASES = Path(__file__).resolve().parent.parent / "cases" / "python"
NAME = "dsv3_router_gemm"
USE = f"from sgl_kernel import {NAME}\n"


def sarif(tree, path, *args):
    done = tree.run("scan", "--format", "sarif", *(args or [*ARGS, "."]))
    (tree.path / path).write_bytes(done.stdout)
    return done


def shards(tree, count, *args):
    names = [f"../{tree.path.name}-logs-{count}-{i}.sarif" for i in range(1, count + 1)]
    return [(name, sarif(tree, name, "--shard", f"{i}/{count}", *(args or [*ARGS, "."]))) for i, name in enumerate(names, 1)]


class Logs(Tree):
    """A tree whose logs lie in a folder beside it."""

    def __init__(self, files=()):
        super().__init__()
        self.top = self.path
        self.path = self.top / "tree"
        self.path.mkdir()
        for path, content in dict(files).items():
            self.put(path, content)


def whole_and_merged(tree, count, *args):
    whole = sarif(tree, "../whole.sarif", *(args or [*ARGS, "."]))
    parts = shards(tree, count, *args)
    merged = tree.run("merge", *(name for name, _ in parts))
    equal((count, merged.err), (count, ""))
    equal((count, merged.returncode), (count, whole.returncode))
    equal((count, merged.stdout == whole.stdout), (count, True))
    return whole, [part for _, part in parts]


def test_shards_of_all_cases():
    with Logs() as tree:
        whole, parts = whole_and_merged(tree, 3, *ARGS, CASES)
        logs = [json.loads(part.stdout)["runs"][0] for part in parts]
        equal(all(len(log["results"]) > 50 for log in logs), True)
        equal([log["properties"]["shard"] for log in logs], ["1/3", "2/3", "3/3"])
        equal(sum(len(log["results"]) for log in logs), len(json.loads(whole.stdout)["runs"][0]["results"]))


def test_shards_of_a_tree_with_everything():
    files = {f"src/{i}.py": USE + f"# {NAME}\n" for i in range(20)}
    files |= {f"src/u{i}.py": "sgl_kernel.bmm_fp8".encode("utf-16") for i in range(4)}
    files |= {f"d{i}/.venv/x.py": USE for i in range(4)} | {"ignored.py": USE, ".gitignore": "ignored.py\n", "a b%.md": "bmm_fp8\n", os.fsdecode(b"raw\xff.md"): "bmm_fp8\n"}
    files |= {"bad.py": "def (:\n" + USE, "c.py": f"{USE.strip()}  # sgl-migrate: ignore[{NAME}] reason=x\ny = 1  # sgl-migrate: ignore[{NAME}, bmm_fp8]\n"}
    # Known across files: the package behind a name of another module, and a macro of a header.
    files |= {"pack.py": "import sgl_kernel as ops\n", "user.py": f"from pack import ops\nops.{NAME}(a, b, c)\n",
              "m.h": "#define WRAP(x) x\n", "m.cc": f"#include <sgl_kernel_ops.h>\n#include \"m.h\"\nvoid f(at::Tensor& a) {{ WRAP({NAME}(a, a, a)); }}\n"}
    with Logs(files) as tree:
        subprocess.run(["git", "init", "-q", "."], cwd=tree.path, check=True)
        whole_and_merged(tree, 1)
        whole, _ = whole_and_merged(tree, 7)
        run = json.loads(whole.stdout)["runs"][0]
        equal((whole.returncode, run["properties"]["ignoredByGit"], len(run["invocations"][0]["toolExecutionNotifications"])), (1 | 2 | 4 | 32, 1, 9))
        whole_and_merged(tree, 2, *ARGS, "src", "d1")


def test_what_one_shard_cannot_know():
    """That nothing is used which the pinned kernel has not, and that there is nothing to rewrite."""
    files = {f"f{i}.py": "from sgl_kernel import dsv3_fused_a_gemm\n" for i in range(20)}
    with Tree({**files, "a.py": "from sgl_kernel import dsv3_router_gemm\n", "requirements.txt": "sglang-kernel==0.4.5\n"}) as tree:
        for args in (ARGS, ["--to", "jit"]):
            said = [tree.run("scan", "--shard", f"{i}/2", *args, ".").out for i in (1, 2)]
            equal([line for out in said for line in out.splitlines() if "still has all" in line or "hint" in line], [])


def test_a_file_is_always_in_the_same_shard():
    with Logs({f"{i}.md": "bmm_fp8\n" for i in range(12)}) as tree:
        def where():
            rows = {}
            for i, (_, done) in enumerate(shards(tree, 4)):
                for r in json.loads(done.stdout)["runs"][0]["results"]:
                    rows[r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]] = i
            return rows
        before = where()
        equal(len(before), 12)
        (tree.path / "3.md").unlink()
        tree.put("new.md", "bmm_fp8\n")
        after = where()
        equal({k: v for k, v in after.items() if k != "new.md"}, {k: v for k, v in before.items() if k != "3.md"})
        equal(before["0.md"], 2)  # XXH64("0.md"), seed 0: the same in all versions and on all machines
        with Logs({"0.md": "bmm_fp8\n"}) as other:
            equal(json.loads(other.run("scan", "--format", "json", "--shard", "3/4", *ARGS, ".").stdout)["totals"]["mention"], 1)


def test_repositories():
    """Two trees and one of them once more: roots get names of their own, what is there twice counts once."""
    with Logs({"a/x.py": USE, "b/x.py": USE, "b/y.md": NAME}) as tree:
        for name in ("a", "b"):
            sarif(tree, f"../{name}.sarif", *ARGS, name)
        sarif(tree, "../both.sarif", *ARGS, "a", "b")
        both = (tree.top / "both.sarif").read_bytes()
        merged = tree.run("merge", "../a.sarif", "../b.sarif", "../a.sarif")
        equal((merged.err, merged.stdout == both), ("", True))
        (tree.top / "first.sarif").write_bytes(tree.run("merge", "../a.sarif").stdout)
        equal(tree.run("merge", "../first.sarif", "../b.sarif").stdout == both, True)  # of what was joined before
        tree.put("a/x.py", "\n" + USE)
        sarif(tree, "../a2.sarif", *ARGS, "a")
        equal(len(json.loads(tree.run("merge", "../a.sarif", "../a2.sarif").stdout)["runs"][0]["results"]), 2)


def test_other_options_are_said():
    with Logs({"x.py": USE}) as tree:
        sarif(tree, "../a.sarif", *ARGS, ".")
        sarif(tree, "../b.sarif", "--kernel", "0.4.4", "--to", "jit", ".")
        text = (tree.top / "a.sarif").read_text()
        (tree.top / "c.sarif").write_text(text.replace('"version": "0.', '"version": "9.'))
        done = tree.run("merge", "../a.sarif", "../b.sarif", "../c.sarif")
        version = json.loads(text)["runs"][0]["tool"]["driver"]["version"]
        equal(done.err.splitlines(), [f"sgl-migrate: ../b.sarif: kernel 0.4.4, to jit, sgl-migrate {version}, where ../a.sarif has kernel 0.4.6, to jit, sgl-migrate {version}: a run of its own",
                                      f"sgl-migrate: ../c.sarif: kernel 0.4.6, to jit, sgl-migrate 9{version[1:]}, where ../a.sarif has kernel 0.4.6, to jit, sgl-migrate {version}: a run of its own"])
        runs = json.loads(done.stdout)["runs"]
        equal(([len(run["results"]) for run in runs], [run["properties"]["kernel"] for run in runs], done.returncode), ([1, 0, 1], ["0.4.6", "0.4.4", "0.4.6"], 1))
        (tree.top / "d.sarif").write_text(text.replace("left sgl_kernel in", "went from sgl_kernel in"))
        done = tree.run("merge", "../a.sarif", "../d.sarif")
        equal((done.err, done.stdout.decode() == text.replace('"filesAnalysed": 1', '"filesAnalysed": 2')),
              ("sgl-migrate: 1 results of the same place and name differ between logs; the first is kept\n", True))


def test_missing_shards():
    with Logs({"x.py": USE}) as tree:
        parts = shards(tree, 5)
        done = tree.run("merge", *(name for name, _ in parts[:1] + parts[3:]))
        equal(done.returncode & 4, 4)
        equal(json.loads(done.out)["runs"][0]["invocations"][0]["executionSuccessful"], False)
        equal(done.err, f"sgl-migrate: 2 of 5 shards are missing, the first is 2/5, of file://{tree.path}/\n")


def test_hostile_logs():
    with Logs({"x.py": USE}) as tree:
        sarif(tree, "../a.sarif")
        good = (tree.top / "a.sarif").read_text()

        def broken(change):
            log = json.loads(good)
            change(log, log["runs"][0])
            return json.dumps(log)

        def assign(target, key, value):
            target[key] = value
        for text, fault in (
            ("", "line 1: "),
            ("[" * 100000, "line 1: maximum parsing depth reached"),
            (good[:len(good) // 2], "line "),
            ("[]", "no SARIF 2.1.0 log"),
            ('{"version": "2.1.0", "runs": {}}', "no SARIF 2.1.0 log"),
            ('{"a": 1, "a": 2}', "line 1: duplicate object key"),
            ('{"version": "2.1.0", "runs": [7]}', "runs[0]: not written by sgl-migrate"),
            (broken(lambda log, run: assign(log, "version", "2.0.0")), "no SARIF 2.1.0 log"),
            (broken(lambda log, run: assign(run["tool"]["driver"], "name", "other\n\x1b[31m")), "runs[0]: not written by sgl-migrate"),
            (broken(lambda log, run: assign(run, "originalUriBaseIds", [])), "runs[0]: no originalUriBaseIds, properties or invocations"),
            (broken(lambda log, run: assign(run, "originalUriBaseIds", {"SRCROOT": {}})), "runs[0]: a root without uri"),
            (broken(lambda log, run: run.pop("results")), "runs[0]: no results or no rules"),
            (broken(lambda log, run: assign(run["results"], 0, None)), "runs[0].results[0]: no ruleId of a rule"),
            (broken(lambda log, run: assign(run["results"][0], "ruleId", "x")), "runs[0].results[0]: no ruleId of a rule"),
            (broken(lambda log, run: assign(run["results"][0], "locations", [])), "runs[0].results[0]: no location below a root"),
            (broken(lambda log, run: assign(run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"], "uriBaseId", "NONE")), "runs[0].results[0]: no location below a root"),
            (broken(lambda log, run: assign(run["tool"]["driver"]["rules"], 0, [])), "runs[0].tool.driver.rules[0]: no id"),
            (broken(lambda log, run: assign(run["properties"], "shard", "3/2")), "runs[0]: the shard is none"),
            (broken(lambda log, run: assign(run["invocations"][0], "toolExecutionNotifications", [{}])), "runs[0].toolExecutionNotifications[0]: no descriptor"),
        ):
            (tree.top / "bad.sarif").write_text(text)
            done = tree.run("merge", "../a.sarif", "../bad.sarif")
            equal((fault, done.returncode, done.out, done.err.count("\n")), (fault, 8, "", 1))
            contains(done.err, f"sgl-migrate: ../bad.sarif: {fault}")
        odd = broken(lambda log, run: (assign(run["properties"], "filesAnalysed", 2**63 - 1), assign(run["invocations"][0], "exitCode", -1), assign(run["results"][0]["locations"][0]["physicalLocation"]["region"], "startLine", -5)))
        (tree.top / "odd.sarif").write_text(odd)
        json.loads(tree.run("merge", "../odd.sarif", "../odd.sarif", "../a.sarif").stdout)


def test_usage():
    with Tree({"x.py": USE, "d/y": ""}) as tree:
        for args, says in (
            (["merge"], "merge needs at least one SARIF file"),
            (["merge", "none"], "none: cannot be read: No such file or directory"),
            (["merge", "d"], "d: is no regular file"),
            (["merge", "--to", "jit"], "unknown option --to"),
            (["fix", "--shard", "1/2", "."], "--shard belongs to scan"),
            (["scan", "--shard", "1/2", "--baseline", "x", "."], "--shard and --baseline do not go together"),
            *((["scan", "--shard", text, "."], f"--shard '{text}': I/N with I from 1 to N is needed") for text in ("", "1", "0/2", "3/2", "1/0", "a/2", "1/2x", "-1/2", "1/-2", "1//2")),
        ):
            done = tree.run(*args)
            equal((args, done.returncode, done.out, done.err.count("\n")), (args, 8, "", 1))
            contains(done.err, f"sgl-migrate: {says}")
        contains(tree.run("merge", "--help").out, "usage: sgl-migrate merge ")


main(globals())
