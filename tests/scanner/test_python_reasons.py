#!/usr/bin/env python3
"""Why a use in Python is left to a person: the reason that comes first, and the level."""
from tool import Tree, equal, main


def reasons(text):
    """line, name, level and reason of each result."""
    with Tree({"a.py": text}) as tree:
        return [(r["locations"][0]["physicalLocation"]["region"]["startLine"], r["ruleId"], r["level"], r["message"]["text"].split("; ")[1])
                for r in tree.sarif()["runs"][0]["results"]]


def test_a_branch_of_another_vendor():
    """Nothing is said of a replacement, which is CUDA's."""
    vendor = "it stands in a branch of another vendor, which has no replacement"
    for condition in ("is_xpu()", "_is_musa", "torch.version.hip"):
        rows = reasons(f"if {condition}:\n    from sgl_kernel import merge_state, dsv3_router_gemm\nelse:\n    from sgl_kernel import merge_state\n")
        equal([(line, name, reason == vendor) for line, name, _, reason in rows],
              [(2, "merge_state", True), (2, "dsv3_router_gemm", True), (4, "merge_state", False)])


def test_a_call_that_asks_first():
    """A name that is registered only where it exists breaks nothing."""
    dead = ("warning", "the call does nothing where the name is gone: remove it with the old code")
    live = ("error", "this string names it to a loader: change it by hand")
    for call, want in (("@register_fake_if_exists", dead), ("@lib.register_fake_if_exists", dead), ("@torch.library.register_fake", live),
                       ("x = import_if_available", dead), ("@if_exists", live), ("@_if_exists", live)):
        end = "\ndef f(): ...\n" if call[0] == "@" else "\n"
        equal((call, [row[2:] for row in reasons(f'{call}("sgl_kernel::dsv3_router_gemm"){end}')]), (call, [want]))


main(globals())
