#!/usr/bin/env python3
"""The SARIF output against what the standard (SARIF 2.1.0, OASIS) and its consumers need."""
import os, re, urllib.parse
from pathlib import Path
from tool import ARGS, Tree, equal, main

CASES = Path(__file__).resolve().parent.parent / "cases"
# Properties that the standard allows, of the objects that are used: a misspelt one would be an error in its schema.
ALLOWED = {
    "log": {"$schema", "version", "runs"},
    "run": {"tool", "invocations", "originalUriBaseIds", "columnKind", "results", "properties"},
    "driver": {"name", "version", "rules", "notifications"},
    "rule": {"id", "shortDescription", "fullDescription", "help", "defaultConfiguration", "properties"},
    "result": {"ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints", "properties", "suppressions"},
    "region": {"startLine", "startColumn", "endColumn"},
    "invocation": {"executionSuccessful", "exitCode", "toolExecutionNotifications", "toolConfigurationNotifications"},
    "notification": {"level", "message", "descriptor", "locations"},
}


def only(kind, thing):
    equal(sorted(set(thing) - ALLOWED[kind]), [])


def text(message):
    equal(list(message), ["text"])
    equal(bool(message["text"].strip()), True)


def check(log):
    only("log", log)
    equal(log["version"], "2.1.0")
    equal(log["$schema"].startswith("https://"), True)
    for run in log["runs"]:
        only("run", run)
        equal(run["columnKind"], "utf16CodeUnits")
        driver = run["tool"]["driver"]
        only("driver", driver)
        equal(driver["name"], "sgl-migrate")
        for base in run["originalUriBaseIds"].values():
            equal(base["uri"].startswith("file:///") and base["uri"].endswith("/"), True)
        for rule in driver["rules"]:
            only("rule", rule)
            text(rule["shortDescription"]), text(rule["fullDescription"]), text(rule["help"])
            equal(rule["defaultConfiguration"], {"level": "error"})
        equal(len({rule["id"] for rule in driver["rules"]}), len(driver["rules"]))
        equal({rule["id"] for rule in driver["rules"]}, {result["ruleId"] for result in run["results"]})
        places, prints = set(), set()
        for result in run["results"]:
            only("result", result)
            equal(driver["rules"][result["ruleIndex"]]["id"], result["ruleId"])
            text(result["message"])
            equal(result["level"] in ("error", "warning", "note"), True)
            equal((result["level"] == "note"), result["properties"]["verdict"] == "mention")
            equal(result["properties"]["verdict"] in ("rewrite", "report", "mention"), True)
            equal(result["properties"]["evidence"] in
                  ("ast", "lexical", "string", "import", "build", "elf", "notebook", "text"), True)
            place = result["locations"][0]["physicalLocation"]
            region = place["region"]
            only("region", region)
            equal(region["startLine"] >= 1 and 1 <= region["startColumn"] < region["endColumn"], True)
            uri = place["artifactLocation"]["uri"]
            equal(re.fullmatch(r"[A-Za-z0-9._~/-]*(?:%[0-9A-F]{2}[A-Za-z0-9._~/-]*)*", uri) is not None, True)
            equal(place["artifactLocation"]["uriBaseId"] in run["originalUriBaseIds"], True)
            places.add((place["artifactLocation"]["uriBaseId"], uri, region["startLine"], result["ruleId"]))
            prints.add((place["artifactLocation"]["uriBaseId"], *result["partialFingerprints"].items()))
        equal((len(places), len(prints)), (len(run["results"]), len(run["results"])))
        [invocation] = run["invocations"]
        only("invocation", invocation)
        equal(invocation["executionSuccessful"], not invocation["exitCode"] & 4)
        known = {d["id"] for d in driver["notifications"]}
        for note in invocation["toolExecutionNotifications"]:
            only("notification", note)
            text(note["message"])
            equal(note["descriptor"]["id"] in known, True)


def test_structure_of_all_cases():
    with Tree() as tree:
        log = tree.sarif(CASES)
        check(log)
        equal(len(log["runs"][0]["results"]) > 50, True)


def test_nothing_found():
    with Tree({"a.py": ""}) as tree:
        log = tree.sarif()
        check(log)
        [run] = log["runs"]
        equal((run["results"], run["tool"]["driver"]["rules"], run["invocations"][0]["exitCode"]), ([], [], 0))


def regions(tree, name):
    return [(r["startLine"], r["startColumn"], r["endColumn"])
            for r in (x["locations"][0]["physicalLocation"]["region"] for x in tree.sarif(name)["runs"][0]["results"])]


def test_columns_are_utf16_code_units():
    with Tree({
        "a.md": "bmm_fp8\né bmm_fp8\n\U0001f600 bmm_fp8\n\tbmm_fp8\r\n漢字bmm_fp8\n",
        "mark.md": "\ufeffbmm_fp8\n\ufeffbmm_fp8\n",
        "bad.md": b"\xff\xe9 bmm_fp8\n\xf0\x9f bmm_fp8",
    }) as tree:
        equal(regions(tree, "a.md"), [(1, 1, 8), (2, 3, 10), (3, 4, 11), (4, 2, 9), (5, 3, 10)])
        equal(regions(tree, "mark.md"), [(1, 1, 8), (2, 2, 9)])
        equal(regions(tree, "bad.md"), [(1, 4, 11), (2, 4, 11)])


def test_uris():
    names = ["a b.md", "100%.md", "q?.md", "h#.md", "ü.md", "c:d.md", "-._~.md", "x/y z/ä+.md"]
    with Tree({name: "bmm_fp8\n" for name in names}) as tree:
        (tree.path / os.fsdecode(b"raw\xff.md")).write_text("bmm_fp8\n")
        log = tree.sarif()
        check(log)
        uris = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in log["runs"][0]["results"]]
        equal(sorted(urllib.parse.unquote_to_bytes(u) for u in uris), sorted([n.encode() for n in names] + [b"raw\xff.md"]))
        equal("a%20b.md" in uris and "raw%FF.md" in uris and "c%3Ad.md" in uris, True)
        base = log["runs"][0]["originalUriBaseIds"]["SRCROOT"]["uri"]
        equal(urllib.parse.unquote(urllib.parse.urlparse(base).path), f"{tree.path}/")


def test_several_roots():
    with Tree({"a/x.md": "bmm_fp8\n", "b c/x.md": "bmm_fp8\n"}) as tree:
        log = tree.sarif("a", "b c/x.md")
        check(log)
        [run] = log["runs"]
        places = [r["locations"][0]["physicalLocation"]["artifactLocation"] for r in run["results"]]
        equal(places, [{"uri": "x.md", "uriBaseId": "SRCROOT"}, {"uri": "x.md", "uriBaseId": "SRCROOT2"}])
        equal(run["originalUriBaseIds"]["SRCROOT2"]["uri"].endswith("/b%20c/"), True)


def test_fingerprints_survive_moved_lines():
    def prints(content):
        with Tree({"a.md": content}) as tree:
            return [r["partialFingerprints"]["sglMigrate/v1"] for r in tree.sarif()["runs"][0]["results"]]
    before = prints("bmm_fp8\n  bmm_fp8\nx bmm_fp8\n")
    equal(len(set(before)), 3)
    equal(prints("one\n\n    bmm_fp8  \r\ntwo\nbmm_fp8\nx bmm_fp8\n"), before)
    equal(prints("y bmm_fp8\n")[0] in before, False)


def test_notifications():
    with Tree({"u.py": "sgl_kernel.bmm_fp8".encode("utf-16"), ".venv/a.py": ""}) as tree:
        log = tree.sarif()
        check(log)
        [invocation] = log["runs"][0]["invocations"]
        equal((invocation["exitCode"], invocation["executionSuccessful"]), (4, False))
        rows = [(n["level"], n["descriptor"]["id"], n["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
                 n["message"]["text"]) for n in invocation["toolExecutionNotifications"]]
        equal(rows, [("note", "not-entered", ".venv", "virtual environment"),
                     ("error", "not-analysed", "u.py", "UTF-16 text that has a name of the catalog; convert it to UTF-8")])


def test_run_properties():
    with Tree({"a": ""}) as tree:
        equal(tree.sarif()["runs"][0]["properties"], {"kernel": "0.4.6", "to": "jit", "filesAnalysed": 1, "ignoredByGit": 0})


main(globals())
