#!/usr/bin/env python3
"""fix on real projects: what it edits, that the rest stays as it was, and that the new imports are right.

usage: real_trees.py BUILD_DIR [--only SUBSTRING]

Downloads (once, to BUILD_DIR/real-trees) releases that are pinned by version and hash, and runs for each row of ROWS
scan, fix --diff and fix on a copy. Prints for each row what was found and each class of edit; docs/real-trees.md has
the table and what was seen in it. Exit status 1 when something differs from what is expected."""
import ast, collections, difflib, json, os, pathlib, re, shutil, subprocess, sys, tarfile, tempfile, zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
import pypi

PINS = []  # what the tree's own pins say
JIT = ["--kernel", "0.4.10", "--to", "jit"]
SGLANG_18 = ["--kernel", "0.4.6", "--to", "sglang@0.5.18"]
SGLANG_23 = ["--kernel", "0.4.10", "--to", "sglang@0.5.23"]
# tree, arguments, files fixed, edited imports. "NAME as fork": with the package sglang renamed, as forks of it are.
ROWS = [
    ("sglang-0.5.9", PINS, 0, 0),
    ("sglang-0.5.9", JIT, 2, 3),
    ("sglang-0.5.9", SGLANG_18, 0, 0),
    ("sglang-0.5.9 as fork", SGLANG_18, 7, 9),
    ("sglang-0.5.9 as fork", SGLANG_23, 17, 21),
    ("sglang-0.5.14", PINS, 0, 0),
    ("sglang-0.5.14", JIT, 1, 2),
    ("sglang-0.5.14", SGLANG_18, 0, 0),
    ("sglang-0.5.14 as fork", SGLANG_18, 5, 6),
    ("sglang-0.5.14 as fork", [*SGLANG_18, "--unsafe"], 7, 9),
    ("sglang-0.5.14 as fork", SGLANG_23, 13, 15),
    ("sglang-0.5.23", PINS, 0, 0),
    ("sglang-0.5.23", SGLANG_23, 0, 0),
    ("vllm-0.33.0", JIT, 0, 0),
    ("vllm-0.33.0", SGLANG_23, 0, 0),
    ("flashinfer_python-0.7.4", JIT, 0, 0),
    ("transformers-5.24.0", JIT, 0, 0),
]


# --- the trees --------------------------------------------------------------------------------------------------------


def download(folder):
    pypi.download_sources(HERE / "requirements-sources.txt", folder)
    for wheels in sorted(HERE.glob("requirements-wheel-*.txt")):  # pip takes one version of a package at a time
        pypi.download_wheels(wheels, folder)
    unpacked = folder / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as source:
            source.extractall(unpacked, filter="data")
    for archive in folder.glob("*.whl"):
        with zipfile.ZipFile(archive) as source:
            source.extractall(unpacked / "-".join(archive.name.split("-")[:2]))
    unpacked.rename(folder / "trees")


def link_copy(tree, copy, fork):
    """A copy whose files are hard links. A fix replaces files, so that it changes the copy alone."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(tree, copy, symlinks=True, copy_function=os.link)
    if fork:
        (copy / "sglang").rename(copy / "sglang_fork")


def stats(folder):
    """What tells whether a file was replaced or written."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            status = os.lstat(path)
            found[os.path.relpath(path, folder)] = status.st_ino, status.st_size, status.st_mtime_ns
    return found


# --- what an edit may do ----------------------------------------------------------------------------------------------


def without_modules(tree):
    """The tree as text in which neighbouring from-imports are one list of the names that they bind, and to what."""
    for node in ast.walk(tree):
        for body in [getattr(node, field, None) for field in ("body", "orelse", "finalbody")]:
            if not isinstance(body, list):
                continue
            merged = []
            for statement in body:
                if isinstance(statement, ast.ImportFrom):
                    names = [f"{one.name} as {one.asname or one.name}" for one in statement.names]
                    statement = ast.Expr(ast.Constant(names))
                    if merged and isinstance(merged[-1], ast.Expr) and isinstance(merged[-1].value, ast.Constant) and \
                            isinstance(merged[-1].value.value, list):
                        merged[-1].value.value = sorted(merged[-1].value.value + names)
                        continue
                merged.append(statement)
            body[:] = merged
    return ast.dump(tree)


def definition(folder, module, name):
    """The function of a module, or None."""
    base = folder / module.replace(".", "/")
    for file in (base.with_suffix(".py"), base / "__init__.py", base / "__init__.pyi"):
        for node in ast.walk(ast.parse(file.read_bytes())) if file.exists() else []:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node
    return None


def takes_the_calls(new, old):
    """Has the new function the old one's parameters at their places and by their names, and defaults for all others?"""
    have, had = ([one.arg for one in args.posonlyargs + args.args] for args in (new.args, old.args))
    optional, was_optional = len(new.args.defaults), len(old.args.defaults)
    values = [[ast.unparse(one) for one in args.defaults] for args in (new.args, old.args)]
    defaults, old_defaults = (dict(zip(reversed(names), reversed(given))) for names, given in zip((have, had), values))
    return have[:len(had)] == had and len(have) - optional <= len(had) - was_optional and \
        all(ast.literal_eval(defaults[one]) == ast.literal_eval(value) if value[0].isdigit() else defaults[one] == value
            for one, value in old_defaults.items()) and \
        all(value is not None for value in new.args.kw_defaults[len(old.args.kwonlyargs):])


def imports(text):
    """(module, name, alias) of all from-imports."""
    return collections.Counter((node.module, one.name, one.asname) for node in ast.walk(ast.parse(text))
                               if isinstance(node, ast.ImportFrom) for one in node.names)


def check_file(path, old, new, lines, faults):
    """`lines` have the results that fix edits; gives the imports that are new: (old module, new module, name)."""
    if path.suffix != ".py":
        faults.append(f"{path}: what fix does to such a file has to be looked at")
        return []
    try:
        new_tree = ast.parse(new)
    except (SyntaxError, ValueError) as error:
        faults.append(f"{path}: does not parse any more: {error}")
        return []
    old_tree = ast.parse(old)
    edited = {line for node in ast.walk(old_tree) if isinstance(node, ast.ImportFrom)
              if any(node.lineno <= line <= node.end_lineno for line in lines) for line in range(node.lineno, node.end_lineno + 1)}
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal" and not edited.issuperset(range(i1 + 1, i2 + 1) if i2 > i1 else [i1]):
            faults.append(f"{path}:{i1 + 1}: changed, though no edited import is there")
    gone, come = imports(old) - imports(new), imports(new) - imports(old)
    edits = []
    for module, name, alias in come.elements():
        source = [one for one in gone if one[1:] == (name, alias)]
        edits.append((source[0][0] if source else "?", module, name))
    if without_modules(old_tree) != without_modules(new_tree):
        faults.append(f"{path}: more than the modules of imports changed")
    return edits


# --- one row ----------------------------------------------------------------------------------------------------------


class Row:
    def __init__(self, build, folder, name, arguments):
        self.tool = build / "bin/sgl-migrate"
        self.name, self.arguments, self.faults = name, arguments, []
        self.tree = folder / "trees" / name.split()[0]
        self.copy = folder / "copy"
        self.fork = name.endswith("as fork")

    def run(self, *arguments):
        done = subprocess.run([self.tool, *arguments, "."], cwd=self.copy, capture_output=True)
        if done.returncode & ~7:
            sys.exit(f"real_trees: sgl-migrate {' '.join(arguments)} in {self.copy}: status {done.returncode}: {done.stderr.decode()}")
        return done.stdout.decode(errors="surrogateescape"), done.stderr.decode()

    def unchanged(self, stats_before, what):
        if stats(self.copy) != stats_before:
            self.faults.append(what)

    def check_files(self, trees, log, changed):
        rewrites, guarded = collections.defaultdict(set), collections.defaultdict(set)
        for one in log["findings"]:  # scan has no --unsafe and reports what a handler guards
            if one["verdict"] == "rewrite":
                rewrites[one["path"]].add((one["line"], one["symbol"]))
            elif "--unsafe" in self.arguments and "a handler takes the failure" in one["message"]:
                guarded[one["path"]].add((one["line"], one["symbol"]))
        edits = collections.Counter()
        for path in map(pathlib.Path, changed):
            if self.fork:
                old = (self.tree / str(path).replace("sglang_fork/", "sglang/", 1)).read_text()
            else:
                old = (self.tree / path).read_text()
            sure, unsure = rewrites[str(path)], guarded[str(path)]
            new = check_file(path, old, (self.copy / path).read_text(), {line for line, _ in sure | unsure}, self.faults)
            if not len(sure) <= len(new) <= len(sure | unsure):
                self.faults.append(f"{path}: {len(new)} new imports for {len(sure)} results")
            edits.update(new)
        if missed := {path for path, sure in rewrites.items() if sure} - set(changed):
            self.faults.append(f"not fixed: {missed}")
        for old_module, module, name in edits:
            self.check_target(trees, log, old_module, module, name)
        return edits

    def check_target(self, trees, log, old_module, module, name):
        """The new function is there, and takes the calls of the old one."""
        release = ROOT / "shim/python" if module == "sgl_kernel_jit" else trees / self.arguments[3].replace("@", "-")
        new = definition(release, module, name)
        if old_module.startswith("sglang."):
            old = definition(self.tree, old_module, name)
        else:
            signature = next(one["pythonSignature"] for one in log["symbols"] if one["id"] == name)
            old = ast.parse(f"def f{signature}: ...").body[0]
        if not new or not takes_the_calls(new, old):
            self.faults.append(f"{module} has no {name} that takes {ast.unparse(old.args)}")

    def check_diff(self, diff, changed):
        """git apply gives what fix gives."""
        with tempfile.TemporaryDirectory() as name:
            place = pathlib.Path(name)
            for path in changed:
                (place / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.tree / (path.replace("sglang_fork/", "sglang/", 1) if self.fork else path), place / path)
            done = subprocess.run(["git", "apply", "-"], input=diff.encode(errors="surrogateescape"), cwd=place, capture_output=True,
                                  env={**os.environ, "GIT_CEILING_DIRECTORIES": str(place.parent)})
            if done.returncode or any((place / path).read_bytes() != (self.copy / path).read_bytes() for path in changed):
                self.faults.append(f"the diff is not what fix does: {done.stderr.decode()}")

    def check(self, trees, files, count):
        link_copy(self.tree, self.copy, self.fork)
        pristine, before = stats(self.tree), stats(self.copy)
        log = json.loads(self.run("scan", "--format", "json", *[a for a in self.arguments if a != "--unsafe"])[0])
        diff, _ = self.run("fix", "--diff", *self.arguments)
        self.unchanged(before, "fix --diff wrote something")
        out, err = self.run("fix", *self.arguments)
        after = stats(self.copy)
        changed = sorted(path for path in after if before.get(path) != after[path])
        if sorted(re.findall(r"^fixed (.*) \(\d+ edits?\)$", out, re.M)) != changed or set(before) != set(after):
            self.faults.append(f"fix says something else than it did: {err}")
        if stats(self.tree) != pristine:
            self.faults.append("fix wrote into a file instead of replacing it")
        edits = self.check_files(trees, log, changed)
        self.run("fix", *self.arguments)
        self.unchanged(after, "a second fix changes something")
        if diff or changed:
            self.check_diff(diff, changed)
        if (len(changed), edits.total()) != (files, count):
            self.faults.append(f"{len(changed)} files and {edits.total()} edits instead of {files} and {count}")
        self.print(log, changed, edits)
        return not self.faults

    def print(self, log, changed, edits):
        totals, options = log["totals"], log["options"]
        print(f"{'FAIL' if self.faults else 'ok  '} {self.name} {' '.join(self.arguments) or '(its own pins)'}: kernel {options['kernel']}, to "
              f"{options['to']}; {totals['files']} files, {totals['rewrite']} to rewrite, {totals['report']} for a person, "
              f"{totals['mention']} mentions; {edits.total()} edits in {len(changed)} files")
        for (old, new, name), times in sorted(edits.items()):
            why = next(one["message"].split(";")[0] for one in log["findings"] if one["symbol"] == name and one["evidence"] == "import"
                       and ("sgl_kernel" in one["message"].split(";")[0]) == (not old.startswith("sglang.")))
            print(f"       {times} x {old}.{name} -> {new}.{name}: {why}")
        for fault in self.faults:
            print(f"     {fault}")
        sys.stdout.flush()


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    only = sys.argv[3] if sys.argv[2:3] == ["--only"] else ""
    folder = build / "real-trees"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "trees").exists():
        download(folder)
    rows = [row for row in ROWS if only in f"{row[0]} {' '.join(row[1])}"]
    passed = sum(Row(build, folder, name, arguments).check(folder / "trees", files, edits) for name, arguments, files, edits in rows)
    shutil.rmtree(folder / "copy", ignore_errors=True)
    print(f"{passed} passed, {len(rows) - passed} failed")
    return 0 if passed == len(rows) else 1


sys.exit(main())
