#!/usr/bin/env python3
"""Comments that accept a use: sgl-migrate: ignore[NAME, ...] until=DATE reason=TEXT."""
import datetime, json
from tool import ARGS, Tree, contains, equal, main

NAME, OTHER = "dsv3_router_gemm", "dsv3_fused_a_gemm"
IGNORE = f"sgl-migrate: ignore[{NAME}]"
CALL = f"void f(at::Tensor& a) {{ {NAME}(a, a, a); }}\n"
HEADER = "#include <sgl_kernel_ops.h>\n"


def log(files, *args):
    with Tree(files) as tree:
        done = tree.run("scan", "--format", "json", *ARGS, *(args or ["."]))
        log = json.loads(done.stdout)
        equal(done.returncode, log["exitStatus"])
        return log


def standings(*contents, name="a.py"):
    """Of each content, as a file of its own: {line: standing} of the live uses, and the troubles as "line: text"."""
    have = log({f"{i}/{name}": content for i, content in enumerate(contents)})
    rows = [({}, []) for _ in contents]
    for f in have["findings"]:
        if f["verdict"] != "mention":
            rows[int(f["path"].split("/")[0])][0][f["line"]] = f["standing"]
    for t in have["troubles"]:
        if t["kind"] == "ignore-comment":
            rows[int(t["path"].split("/")[0])][1].append(f"{t['line']}: {t['text']}")
    return rows


def accepted(cases, name="a.py"):
    """cases: {content: lines}: exactly these lines are ignored, and nothing is wrong with the comments."""
    for (content, lines), (have, troubles) in zip(cases.items(), standings(*cases, name=name)):
        equal((name, content, sorted(line for line, standing in have.items() if standing == "ignored"), troubles), (name, content, lines, []))


def test_same_line_and_line_above():
    use = f"from sgl_kernel import {NAME}"
    accepted({
        f"{use}  # {IGNORE}\n{use}\n": [1],
        f"{use}  # {IGNORE}\r\n": [1],
        f"# {IGNORE}\n{use}\n{use}\n": [2],
        f"# {IGNORE}\n\n# a comment between\n{use}\n": [4],
        f"{use}\n{use}  # noqa: F401  # {IGNORE}\n": [2],
        f"def f():\n    # {IGNORE}\n    {use}\n": [3],
        f"# {IGNORE} until=2999-12-31 reason=the old wheel stays, until the move\n{use}\n": [2],
        f"# {IGNORE}\n# sgl-migrate: ignore[{OTHER}]\n{use}, {OTHER}\n": [3],
    })


def test_statements_over_lines():
    accepted({
        f"# {IGNORE}\nfrom sgl_kernel import (\n    x,\n    {NAME},\n)\n": [4],
        f"from sgl_kernel import (  # {IGNORE}\n    {NAME},\n)\n": [2],
        f"from sgl_kernel import (\n    {NAME},  # {IGNORE}\n    {OTHER},\n)\n": [2],
        f"from sgl_kernel import (\n    # {IGNORE}\n    {NAME},\n)\n": [3],
        f"import sgl_kernel\n# {IGNORE}\nf(\'\'\'(\n\'\'\',\n  sgl_kernel.{NAME})\nsgl_kernel.{NAME}\n": [5],
        f"import sgl_kernel\n# {IGNORE}\nx = 1 + \\\n  sgl_kernel.{NAME}\nsgl_kernel.{NAME}\n": [4],
        f"import sgl_kernel\n# {IGNORE}\nif sgl_kernel.{NAME}:\n  sgl_kernel.{NAME}\n": [3],
    })
    accepted({HEADER + f"void f(at::Tensor& a) {{\n  // {IGNORE}\n  {NAME}(\n    a, a, a);\n  {NAME}(a, a, a);\n}}\n": [4]}, "a.cc")


def test_several_names():
    use = f"from sgl_kernel import {NAME}, {OTHER}\n"
    have = log({"a.py": f"# sgl-migrate: ignore[{NAME}, {OTHER}]\n{use}"})
    equal([(f["symbol"], f["standing"]) for f in have["findings"]], [(NAME, "ignored"), (OTHER, "ignored")])
    equal((have["exitStatus"], have["totals"]["ignored"]), (0, 2))
    have = log({"a.py": f"# sgl-migrate: ignore[{NAME}]\n{use}"})
    equal([(f["symbol"], f["standing"]) for f in have["findings"]], [(NAME, "ignored"), (OTHER, "open")])


def test_other_languages():
    accepted({
        HEADER + f"{CALL.strip()}  // {IGNORE}\n": [2],
        HEADER + f"/* {IGNORE} reason=kept */\n{CALL}": [3],
        HEADER + f"/*\n * {IGNORE}\n */\n{CALL}": [5],
        HEADER + f"/* {IGNORE} */ {CALL}{CALL.replace('f(', 'g(')}": [2],
    }, "a.cu")
    entry = "csrc/gemm/dsv3_router_gemm_entry.cu"
    accepted({f"add_library(x\n  # {IGNORE}\n  {entry}\n)\n": [3], f"# {IGNORE}\nadd_library(x\n  ${{Y}}\n  {entry})\n": [4]}, "CMakeLists.txt")
    program = f"python3 -c 'import sgl_kernel; sgl_kernel.{NAME}'"
    accepted({f"{program}  # {IGNORE}\n{program}\n": [1], f"# {IGNORE}\nx \\\n  && {program}\n": [3]}, "a.sh")
    accepted({f"jobs:\n  # {IGNORE}\n  run: {program}\n": [3], f"jobs:\n  run: |\n    # {IGNORE}\n    {program}\n    {program}\n": [4]}, "a.yml")


def notebook(*cells, indent=1):
    return json.dumps({"cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": cell.splitlines(True)} for cell in cells],
                       "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}, indent=indent)


def test_notebooks():
    text = notebook(f"from sgl_kernel import {NAME}\n", f'# {IGNORE} reason="quoted"\nfrom sgl_kernel import {NAME}\nfrom sgl_kernel import {NAME}  # {IGNORE}\nfrom sgl_kernel import {NAME}')
    lines = [i + 1 for i, line in enumerate(text.split("\n")) if "import" in line]
    equal(standings(text, name="a.ipynb"), [({lines[0]: "open", lines[1]: "ignored", lines[2]: "ignored", lines[3]: "open"}, [])])
    with Tree({"a.ipynb": text}) as tree:  # the accepted ones stay, the others are rewritten
        tree.run("fix", *ARGS, ".")
        code = "".join("".join(cell["source"]) for cell in json.loads(tree.get("a.ipynb"))["cells"])
        equal((code.count(f"from sgl_kernel import {NAME}"), code.count("from sgl_kernel_jit")), (2, 2))


def test_strings_do_nothing():
    use = f"from sgl_kernel import {NAME}"
    for have, troubles in standings(f'x = "# {IGNORE}"; {use}\n', f'x = """\n# {IGNORE}\n"""\n{use}\n', f"r'#  {IGNORE}'\n{use}\n", f"f'# {IGNORE} {{x}}'\n{use}\n",
                                    f"# read about {IGNORE} first\n{use}\n"):
        equal((set(have.values()), troubles), ({"open"}, []))
    for have, troubles in standings(HEADER + f'const char* s = "// {IGNORE}"; {CALL}', HEADER + f'auto s = R"(\n// {IGNORE}\n)"; {CALL}', name="a.cc"):
        equal((set(have.values()), troubles), ({"open"}, []))
    equal(standings(f"echo '# {IGNORE}'; python3 -c 'import sgl_kernel; sgl_kernel.{NAME}'\n", name="a.sh"), [({1: "open"}, [])])


def test_fix_leaves_it():
    content = f"# {IGNORE}\nfrom sgl_kernel import {NAME}, {OTHER}\n"
    with Tree({"a.py": content, "b.cc": HEADER + f"// {IGNORE}\n{CALL}", "c.py": f"import sgl_kernel\nsgl_kernel.{NAME}(a, b, c)  # {IGNORE}\n"}) as tree:
        before = tree.get("b.cc"), tree.get("c.py")
        done = tree.run("fix", *ARGS, ".")
        equal(done.returncode, 0)
        contains(done.out, "1 file fixed; 0 live uses left")
        contains(done.out, "; 3 ignored by comments")
        equal(tree.get("a.py"), f"# {IGNORE}\nfrom sgl_kernel import {NAME}\nfrom sgl_kernel_jit import {OTHER}\n")
        equal((tree.get("b.cc"), tree.get("c.py")), before)


def test_unused():
    what = f"this comment ignores {NAME}, which is not used there: remove it"
    equal(standings(f"# {IGNORE}\nx = 1\n", f"# sgl-migrate: ignore[{NAME}, {OTHER}]\nfrom sgl_kernel import {OTHER}\n", f"x = 1\n# {IGNORE}\n"),
          [({}, [f"1: {what}"]), ({2: "ignored"}, [f"1: {what}"]), ({}, [f"2: {what}"])])
    with Tree({"a.py": f"x = 1  # {IGNORE}\n"}) as tree:
        done = tree.run("scan", *ARGS, ".")
        equal((done.returncode, done.err), (32, f"sgl-migrate: a.py:1: ignore comment: this comment ignores {NAME}, which is not used there: remove it\n"))
        contains(done.out, "0 mentions")


def test_a_name_that_the_kernel_still_has_is_not_unused():
    """One tree, several kernels: the comment is for the newer ones."""
    content = f"from sgl_kernel import {NAME}  # {IGNORE}\n"
    with Tree({"a.py": content, "b.py": f"x = 1  # {IGNORE}\n"}) as tree:
        for kernel, status, said in (("0.4.4", 0, False), ("0.4.6", 32, True)):
            done = tree.run("scan", "--kernel", kernel, "--to", "jit", ".")
            equal((kernel, done.returncode, "b.py:1: ignore comment" in done.err, "a.py:1: ignore" in done.err), (kernel, status, said, False))


def test_until():
    today = datetime.datetime.now(datetime.timezone.utc).date()
    day = datetime.timedelta(days=1)
    use = f"from sgl_kernel import {NAME}"
    dates = [today + day, today - day, "2001-02-28"]
    past = lambda date: f"1: this ignore comment expired on {date}: change the code, or give it a new date"
    equal(standings(*(f"{use}  # {IGNORE} until={date} reason=later\n" for date in dates)),
          [({1: "ignored"}, []), ({1: "open"}, [past(dates[1])]), ({1: "open"}, [past(dates[2])])])
    with Tree({"a.py": f"{use}  # {IGNORE} until=2001-01-01\n"}) as tree:
        equal(tree.run("scan", *ARGS, ".").returncode, 33)
        equal(tree.run("fix", *ARGS, ".").returncode, 32)  # it protects nothing any more
        contains(tree.get("a.py"), "sgl_kernel_jit")


def test_malformed():
    faults = (
        ("skip", "ignore[NAME] is expected"),
        ("ignore", "ignore[NAME] is expected"),
        ("ignore[]", "a name is missing in the brackets"),
        (f"ignore[{NAME}", "the bracket behind the names is missing"),
        (f"ignore[{NAME},]", "a name is missing in the brackets"),
        ("ignore[dsv3_router_gem]", "no removed name is called 'dsv3_router_gem'"),
        (f"ignore[{NAME}] until=2027-02-29", "'2027-02-29' is no date"),
        (f"ignore[{NAME}] until=2027-3-1", "'2027-3-1' is no date"),
        (f"ignore[{NAME}] until=", "'' is no date"),
        (f"ignore[{NAME}] reason=", "the reason is empty"),
        (f"ignore[{NAME}] reason=x until=2027-03-01", "until= has to stand before reason="),
        (f"ignore[{NAME}] because", "'because' is not understood"),
        (f"ignore[{NAME}]x", "'x' is not understood"),
    )
    have = standings(*(f"# sgl-migrate: {comment}\nfrom sgl_kernel import {NAME}\n" for comment, _ in faults))
    for (comment, what), one in zip(faults, have):
        equal((comment, one), (comment, ({2: "open"}, [f"1: {what}; the form is sgl-migrate: ignore[NAME, ...] until=YYYY-MM-DD reason=TEXT"])))
    equal(log({"only.py": "# sgl-migrate: ignore[nothing]\n"})["exitStatus"], 32)  # no name of the catalog in the file


def test_broken_python():
    equal(standings(f"def (:\n'# {IGNORE}'\nfrom sgl_kernel import {NAME}  # {IGNORE}\nfrom sgl_kernel import {NAME}\n"),
          [({3: "ignored", 4: "open"}, [])])


def test_other_forms_say_it():
    files = {"a.py": f"from sgl_kernel import {NAME}  # {IGNORE} until=2999-01-01 reason=old <wheel>\nx = 1  # {IGNORE}\n"}
    with Tree(files) as tree:
        run = json.loads(tree.run("scan", "--format", "sarif", *ARGS, ".").stdout)["runs"][0]
        equal([r.get("suppressions") for r in run["results"]], [[{"kind": "inSource", "status": "accepted", "justification": "old <wheel>"}]])
        [note] = run["invocations"][0]["toolConfigurationNotifications"]
        equal((note["descriptor"]["id"], note["locations"][0]["physicalLocation"]["region"]["startLine"]), ("ignore-comment", 2))
        [finding] = log(files)["findings"]
        equal(finding["ignore"], {"line": 1, "until": "2999-01-01", "reason": "old <wheel>"})
        contains(tree.run("scan", "--format", "github", *ARGS, ".").out, "::warning file=a.py,line=2,title=ignore comment::")
        contains(tree.run("scan", "--format", "junit", *ARGS, ".").out, 'tests="2" failures="0" errors="1" skipped="1"')
        contains(tree.run("scan", "--format", "html", *ARGS, ".").out, "1 ignore comments and 0 entries of the baseline stand for nothing")


main(globals())
