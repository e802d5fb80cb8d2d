#!/usr/bin/env python3
"""Import statements in random layouts, rewritten by fix and read again with Python's own parser: every name is bound as
before, kept names come from the old package and the others from the new module, no comment is lost, nothing else
changes, and a second run changes nothing. The seed is fixed; REWRITE_SEED and REWRITE_FILES change it and the amount."""
import ast, io, json, os, random, re, tokenize
from tool import Tree, equal, main

SEED = int(os.environ.get("REWRITE_SEED", "1"))
FILES = int(os.environ.get("REWRITE_FILES", "400"))
ARGS = ["--kernel", "0.4.6", "--to", "sglang@0.5.18"]
MOVED = {"dsv3_router_gemm": "sglang.kernels.ops.gemm.dsv3_router_gemm",
         "dsv3_fused_a_gemm": "sglang.kernels.ops.gemm.fused_a_gemm",
         "gptq_marlin_repack": "sglang.kernels.ops.quantization.gptq_marlin_repack",
         "awq_marlin_repack": "sglang.kernels.ops.quantization.awq_marlin_repack",
         "hadamard_transform": "sglang.kernels.ops.quantization.hadamard"}
KEPT = ["gelu_and_mul", "merge_state_v2", "shuffle_rows", "weak_ref_tensor", "silu_and_mul"]
comments = 0


def comment(rng, often):
    global comments
    if rng.random() > often:
        return ""
    comments += 1
    return f"#{rng.choice(['', ' ', '  '])}note {comments}{rng.choice(['', ' (', ' , x', ' # more'])}"


def blank(rng):
    return rng.choice(["", "", " ", "  ", "\t"])


def statement(rng, indent):
    names = rng.sample(list(MOVED), rng.randint(1, 3)) + rng.sample(KEPT, rng.randint(0, 3))
    rng.shuffle(names)
    entries = [f"{n} as {n if rng.random() < 0.3 else 'a' + str(rng.randrange(10**6))}" if rng.random() < 0.3 else n for n in names]
    style = rng.random()
    head = f"from {blank(rng)}sgl_kernel{blank(rng)} import "
    if style < 0.35:  # one line
        text = head + f"{blank(rng)},{blank(rng)}".join(entries)
    elif style < 0.5:  # backslashes
        text = head + rng.choice(["", "\\\n" + indent + "    "])
        for i, entry in enumerate(entries):
            text += entry
            if i + 1 < len(entries):
                text += rng.choice([", ", ",", " , "]) + rng.choice(["", "\\\n" + indent + rng.choice(["    ", "", "\t"])])
    else:  # parentheses
        text = head + "(" + blank(rng)
        lead = rng.random() < 0.15
        for i, entry in enumerate(entries):
            if rng.random() < 0.7:
                note = comment(rng, 0.3)
                text += ("  " if note else "") + note + "\n" + rng.choice(["", "", "", "\n"])
                for _ in range(rng.choice([0, 0, 1, 2])):
                    above = comment(rng, 1)
                    text += indent + "    " + above + "\n" + rng.choice(["", "", "", "\n"])
                text += rng.choice([indent + "    ", "  ", "", "\t"])
            text += (", " if lead and i else "") + entry
            last = i + 1 == len(entries)
            if not lead and (not last or rng.random() < 0.5):
                text += rng.choice([",", ", ", " ,"])
        note = comment(rng, 0.2)
        if note:
            text += "  " + note + "\n" + indent
        elif rng.random() < 0.6:
            text += "\n" + rng.choice([indent, "", indent + "  "])
        text += ")"
    return text


def qualified(rng, indent):
    alias = rng.choice(["", " as sk" + str(rng.randrange(1000))])
    name = rng.choice(list(MOVED))
    root = alias.split()[-1] if alias else "sgl_kernel"
    dots = rng.choice([".", ". ", " .", " . ", ".\\\n    "])
    return f"import sgl_kernel{alias}", f"use = {rng.choice(['', '('])}{root}{dots}{name}"


def source(rng):
    newline = rng.choice(["\n", "\n", "\r\n"])
    text, indent = "", ""
    for _ in range(rng.randint(1, 4)):
        indent = rng.choice(["", "", "    ", "\t", "  "])
        if indent:
            text += rng.choice(["if x:\n", "def f():\n", "class A:\n", "with y:\n"])
        kind = rng.random()
        if kind < 0.75:
            body = statement(rng, indent)
            tail = rng.choice(["", "", "", ";", "; y = 2", " ; z()"])
            front = rng.choice(["", "", "", "q = 1; "])
            note = comment(rng, 0.3)
            text += indent + front + body + tail + ("  " + note if note else "") + "\n"
        else:
            first, use = qualified(rng, indent)
            use += ")" if "(" in use else ""
            note = comment(rng, 0.3)
            joined = rng.choice(["; ", "\n" + indent])
            text += indent + first + ("  " + note if note and joined != "; " else "") + joined + use + "\n"
        text += rng.choice(["", "\n", "k = 3\n", "# between\n"]) if rng.random() < 0.5 else ""
    if rng.random() < 0.3:
        text = text.rstrip("\n")
    return text.replace("\n", newline)


def bindings(text):
    """For each block, in order: what each name is that an import from binds."""
    found = []
    for scope in ast.walk(ast.parse(text)):
        for field in ("body", "orelse"):
            block = getattr(scope, field, None)
            if isinstance(block, list):
                found.append({(alias.asname or alias.name, node.module, alias.name)
                              for node in block if isinstance(node, ast.ImportFrom) for alias in node.names})
    return found


def notes(text):
    """The comments; several may have come together on one line."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sorted(n for t in tokens if t.type == tokenize.COMMENT for n in re.findall(r"note \d+|between", t.string))


def wanted(old):
    result = []
    for names in old:
        result.append({(bound, MOVED.get(name, module) if module == "sgl_kernel" else module, name) for bound, module, name in names})
    return result


def rest(text):
    """Everything but imports and comments."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for field in ("body", "orelse"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                setattr(node, field, [s for s in block if not isinstance(s, (ast.Import, ast.ImportFrom))])
    return ast.dump(tree)


def check(name, old, new, again):
    before, after = bindings(old), bindings(new)
    equal(len(before), len(after))
    for want, have in zip(wanted(before), after):
        if not want <= have:
            raise AssertionError(f"{name}: wanted {want - have}\n--- old\n{old}\n--- new\n{new}")
    if notes(old) != notes(new):
        raise AssertionError(f"{name}: comments {notes(old)} became {notes(new)}\n--- old\n{old}\n--- new\n{new}")
    if "use = " not in old and rest(old) != rest(new):
        raise AssertionError(f"{name}: more than imports changed\n--- old\n{old}\n--- new\n{new}")
    equal(new, again)
    if "\r\n" in old:
        if "\n" in new.replace("\r\n", ""):
            raise AssertionError(f"{name}: a line ends with a newline alone\n--- old\n{old}\n--- new\n{new}")
    equal(new.endswith("\n"), old.endswith("\n"))


def make(number):
    def test():
        rng = random.Random(SEED * 1000 + number)
        files = {}
        while len(files) < FILES // 4:
            text = source(rng)
            try:
                ast.parse(text)
            except SyntaxError:
                continue
            files[f"f{len(files)}.py"] = text
        with Tree(files) as tree:
            done = tree.run("fix", *ARGS, ".")
            if done.returncode not in (0, 1, 3):
                refused = next(name for name in files if f"{name}: " in done.err)
                raise AssertionError(f"{done.err}\n--- {refused}\n{files[refused]}")
            first = {name: tree.get(name) for name in files}
            tree.run("fix", *ARGS, ".")
            reported = tree.run("scan", *ARGS, ".").out
            for name in files:
                if f"{name}:" in reported:
                    continue  # a person decides: other statements of the file may still have changed
                check(name, files[name], first[name], tree.get(name))

    return test


def notebook(text, rng):
    """The text as one cell, in one of the layouts that JSON writers give."""
    lines = text.splitlines(True)
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": lines if rng.random() < 0.7 else text}
    return json.dumps({"cells": [cell], "nbformat": 4, "metadata": {}}, indent=rng.choice([None, 1, 2]),
                      ensure_ascii=rng.random() < 0.5)


def test_notebooks():
    """A cell is rewritten as the same text in a .py file is; the JSON around it stays valid."""
    rng = random.Random(SEED)
    files = {}
    while len(files) < FILES // 2:
        text = source(rng).replace("\r\n", "\n").replace("note", "n\u00f6te")
        try:
            ast.parse(text)
        except SyntaxError:
            continue
        files[f"f{len(files)}.py"] = text
    books = {name.replace(".py", ".ipynb"): notebook(text, rng) for name, text in files.items()}
    with Tree({**files, **books}) as tree:
        tree.run("fix", *ARGS, ".")
        for name in files:
            cell = json.loads(tree.get(name.replace(".py", ".ipynb")))["cells"][0]["source"]
            if isinstance(cell, list):
                equal([line.count("\n") for line in cell[:-1]], [1] * (len(cell) - 1))
            equal("".join(cell), tree.get(name))


for i in range(4):
    globals()[f"test_layouts_{i}"] = make(i)

main(globals())
