#!/usr/bin/env python3
"""The forms of a report: text with the source line, JSON, GitHub, JUnit, HTML. SARIF has test_sarif.py."""
import html, html.parser, json, os, re, unicodedata
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from tool import ARGS, Tree, contains, equal, main

CASES = Path(__file__).resolve().parent.parent / "cases" / "python"
NAME = "dsv3_router_gemm"
OLD = f"from sgl_kernel import {NAME}\n"
OPERATOR = f"import torch\ntorch.ops.sgl_kernel.{NAME}(a, b, c)\n"
# A folder and a file as nobody should name them; the quotes, brackets and line ends must stay text everywhere.
HOSTILE = "a\"'<b>&amp;\n::error::x%,\x1b[31m\u202e]]>"


def width(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


def marked(source):
    """The source line and what its caret stands under, of a Markdown file with this one line."""
    with Tree({"a.md": source}) as tree:
        done = tree.run("scan", *ARGS, ".")
        place, line, caret = done.stdout.decode().split("\n")[:3]  # not splitlines: that splits at more than \n
        column, under = width(caret) - width(caret.lstrip(" ")), ""
        for i, c in enumerate(line):
            if width(line[:i]) >= column and width(line[:i]) < width(caret):
                under += c
        return line, under


def test_caret_under_the_name():
    for source in ("bmm_fp8", "\tbmm_fp8\t|", "  x\t bmm_fp8", "漢字 bmm_fp8 漢字", "e\u0301 bmm_fp8", "\U0001f600 bmm_fp8",
                   "\ufeffbmm_fp8", "a\x1b[31m bmm_fp8", "\u202ea bmm_fp8", "\x00 bmm_fp8"[1:], "bmm_fp8\r"):
        line, under = marked(source + "\n")
        equal((source, under), (source, "bmm_fp8"))
        equal(any(c in line for c in "\t\x1b\u202e\r\ufeff"), False)
    equal(marked(b"\xff\xe9 bmm_fp8 \xf0\x9f\n")[0], "    \\xff\\xe9 bmm_fp8 \\xf0\\x9f")
    equal(marked("\tx\x07\u202e\x7f\x85 bmm_fp8\n")[0], "            x\\x07\\u{202e}\\x7f\\u{85} bmm_fp8")


def test_long_lines_are_cut():
    for source in ("bmm_fp8 " + "x" * 5000, "x" * 5000 + " bmm_fp8", "y" * 3000 + " bmm_fp8 " + "z" * 3000, "漢" * 300 + " bmm_fp8 " + "字" * 300):
        line, under = marked(source + "\n")
        equal(under, "bmm_fp8")
        equal(width(line) <= 4 + 3 + 120 + 2 + 3, True)
        equal("..." in line, True)
    equal(marked("x" * 112 + " bmm_fp8\n")[0], "    " + "x" * 112 + " bmm_fp8")


def test_hostile_names_in_text():
    with Tree({f"{HOSTILE}.md": "bmm_fp8\n", f"{HOSTILE}.py": "x".encode("utf-16") + "sgl_kernel.bmm_fp8".encode("utf-16-le")}) as tree:
        done = tree.run("scan", *ARGS, ".")
        equal([line for line in done.out.split("\n") if line.startswith("::")], [])
        contains(done.out, "a\"'<b>&amp;\\x0a::error::x%,\\x1b[31m\\u{202e}]]>.md:1:1: mention")
        equal([c for c in done.out + done.err if c in "\x1b\u202e"], [])
        contains(done.err, "\\u{202e}]]>.py: not analysed: ")


def scan(tree, form, *args):
    done = tree.run("scan", "--format", form, *ARGS, *(args or ["."]))
    return done.stdout.decode(), done


def test_json():
    with Tree({"src/a.py": "# é\n" + OPERATOR, "b.py": OLD, "u.py": "sgl_kernel.bmm_fp8".encode("utf-16"), ".venv/x.py": "",
               os.fsdecode(b"raw\xff.md"): f"\U0001f600 {NAME}\n"}) as tree:
        text, done = scan(tree, "json")
        log = json.loads(text)
        equal(sorted(log), ["baseline", "exitStatus", "findings", "format", "formatVersion", "options", "roots", "symbols", "toolVersion", "totals", "troubles"])
        equal((log["format"], log["formatVersion"], log["exitStatus"]), ("sgl-migrate", 1, done.returncode))
        equal(log["options"], {"kernel": "0.4.6", "to": "jit"})
        equal(log["roots"], [{"path": ".", "absolute": str(tree.path)}])
        equal([(f["path"], f["line"], f["column"], f["endColumn"], f["verdict"], f["evidence"], f["level"], f["standing"], f["text"]) for f in log["findings"]],
              [("b.py", 1, 24, 40, "rewrite", "import", "error", "open", OLD.strip()),
               ("raw\ufffd.md", 1, 3, 19, "mention", "text", "note", "open", f"\U0001f600 {NAME}"),
               ("src/a.py", 3, 22, 38, "report", "ast", "error", "open", f"torch.ops.sgl_kernel.{NAME}(a, b, c)")])
        equal(log["findings"][1]["uri"], "raw%FF.md")
        equal({f["symbol"] for f in log["findings"]}, {NAME})
        equal(all(re.fullmatch("[0-9a-f]{32}", f["fingerprint"]) and f["message"] for f in log["findings"]), True)
        [symbol] = log["symbols"]
        equal((symbol["id"], symbol["removals"][0]["removed"]), (NAME, True))
        equal({"jit", "sglang"} <= {r["kind"] for r in symbol["replacements"]}, True)
        equal([(t["path"], t["kind"]) for t in log["troubles"]], [(".venv", "left-out"), ("u.py", "not-analysed")])
        equal(log["totals"], {"files": 4, "filesWithUses": 2, "rewrite": 1, "report": 1, "mention": 1, "ignored": 0, "inBaseline": 0, "stale": 0,
                              "notAnalysed": 1, "partly": 0, "leftOut": 1, "ignoredByGit": 0})


def test_json_of_long_lines():
    with Tree({"a.md": "x" * 9000 + " bmm_fp8 " + "y" * 9000 + "\n"}) as tree:
        [finding] = json.loads(scan(tree, "json")[0])["findings"]
        equal((len(finding["text"]) <= 400, "bmm_fp8" in finding["text"], finding["column"]), (True, True, 9002))


def parse_command(line):
    """A workflow command as the runner reads it."""
    command, properties, data = re.fullmatch(r"::(\w+) (.*?)::(.*)", line).groups()
    decode = lambda text: re.sub("%([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), text)
    return command, {k: decode(v) for k, v in (p.split("=", 1) for p in properties.split(","))}, decode(data)


def test_github():
    guarded = f"try:\n    from sgl_kernel import {NAME}\nexcept ImportError:\n    {NAME} = None\n"
    with Tree({f"{HOSTILE}.py": OLD, "g.py": guarded, "m.md": NAME + "\n", "u.py": "sgl_kernel.bmm_fp8".encode("utf-16")}) as tree:
        text, done = scan(tree, "github")
        lines = text.rstrip("\n").split("\n")
        commands = [parse_command(line) for line in lines[:-1]]
        equal([c[0] for c in commands], ["error", "warning", "notice", "warning"])
        equal(commands[0][1], {"file": f"{HOSTILE}.py", "line": "1", "col": "24", "endColumn": "39", "title": f"{NAME}: rewrite"})
        contains(commands[0][2], "left sgl_kernel in 0.4.5")
        equal(lines[-1], "sgl-migrate: 1 errors, 2 warnings, 1 notices")
        equal(done.returncode, 7)
    with Tree({"a.py": OLD * 13, "m.md": f"{NAME}\n" * 2}) as tree:
        text, done = scan(tree, "github")
        contains(text, "sgl-migrate: GitHub shows 10 annotations of a kind for each step: 3 of these are in this log only")


def test_junit():
    with Tree({f"{HOSTILE}.py": OLD + OPERATOR, "b/a.py": OLD, "m.md": NAME + "\n", "u.py": "sgl_kernel.bmm_fp8".encode("utf-16")}) as tree:
        text, done = scan(tree, "junit")
        root = ElementTree.fromstring(text.encode())
        equal((root.tag, [root.get(k) for k in ("tests", "failures", "errors", "skipped")]), ("testsuites", ["4", "3", "1", "0"]))
        for suite in root:
            cases = list(suite)
            equal((suite.tag, {c.tag for c in cases}), ("testsuite", {"testcase"}))
            equal([suite.get(k) for k in ("tests", "failures", "errors", "skipped")],
                  [str(len(cases)), *(str(sum(c.find(t) is not None for c in cases)) for t in ("failure", "error", "skipped"))])
            equal(len({(c.get("classname"), c.get("name")) for c in cases}), len(cases))
        case = root[0][0]
        shown = HOSTILE.replace("\n", "\\x0a").replace("\x1b", "\\x1b").replace("\u202e", "\\u{202e}")
        equal((root[0].get("name"), case.get("file"), case.get("line")), (f"{shown}.py", f"{shown}.py", "1"))
        contains(case.find("failure").get("message"), "left sgl_kernel in 0.4.5")
    with Tree({"a.py": ""}) as tree:
        root = ElementTree.fromstring(scan(tree, "junit")[0].encode())
        equal((root.get("tests"), root.get("failures"), len(root[0])), ("1", "0", 1))


class Page(html.parser.HTMLParser):
    """Checks the nesting; collects tags, attributes and the text of each cell."""
    VOID = {"meta", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], set(), [], ""
        self.feed(text)
        self.close()
        equal(self.open, [])

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes += [(tag, *one) for one in attributes]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        equal(self.open.pop(), tag)

    def handle_data(self, data):
        self.text += data


def test_html():
    with Tree({f"{HOSTILE}/x/deep/a.py": OLD + OPERATOR, "src/b.py": OLD, "m.md": "bmm_fp8\n", ".venv/y.py": "", "u.py": "sgl_kernel.bmm_fp8".encode("utf-16")}) as tree:
        text, done = scan(tree, "html")
        page = Page(text)
        equal(page.tags & {"script", "link", "img", "iframe"}, set())
        equal([a for a in page.attributes if a[1] in ("src", "href", "onload", "onclick")], [])
        equal(re.findall(r"https?://|url\(|@import", text), [])
        shown = HOSTILE.replace("\n", "\\x0a").replace("\x1b", "\\x1b").replace("\u202e", "\\u{202e}")
        contains(page.text, f"{shown}/x2")  # the folder and its number of live uses
        contains(page.text, f"{shown}/x/deep/a.py:1")
        contains(page.text, "3live uses, which fail with this release")
        contains(page.text, "\nReplacement: sgl_kernel_jit.dsv3_router_gemm.")
        contains(page.text, "\ntorch operator (CUDA): last in ")
        contains(page.text, "1 not analysed, 0 in part, 1 left out on purpose")
        equal(done.returncode, 7)
    with Tree({"a.py": ""}) as tree:
        contains(Page(scan(tree, "html")[0]).text, "0live uses")


def test_forms_agree():
    with Tree() as tree:
        log = json.loads(scan(tree, "json", CASES)[0])
        sarif = json.loads(scan(tree, "sarif", CASES)[0])["runs"][0]
        rows = [(f["uri"], f["line"], f["symbol"], f["verdict"], f["level"]) for f in log["findings"]]
        places = [r["locations"][0]["physicalLocation"] for r in sarif["results"]]
        equal(rows, [(p["artifactLocation"]["uri"], p["region"]["startLine"], r["ruleId"], r["properties"]["verdict"], r["level"])
                     for p, r in zip(places, sarif["results"])])
        equal(len(rows) > 200, True)
        live = sum(f["verdict"] != "mention" for f in log["findings"])
        equal(ElementTree.fromstring(scan(tree, "junit", CASES)[0].encode()).get("failures"), str(live))
        equal(Page(scan(tree, "html", CASES)[0]).text.count("sgl-migrate fix"), 1)
        github = scan(tree, "github", CASES)[0].split("\n")
        equal(sum(line.startswith(("::error", "::warning", "::notice")) and ",line=" in line for line in github), len(rows))
        equal(sum(line.startswith("    ") and line.lstrip().startswith("^") for line in scan(tree, "text", CASES)[0].split("\n")), len(rows))


main(globals())
