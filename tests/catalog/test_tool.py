#!/usr/bin/env python3
"""The command sgl-catalog: what it prints where, its exit status, and that a failure writes nothing."""
import os, pathlib, shutil, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOOL = pathlib.Path(os.environ["BUILD_DIR"]) / "bin" / "sgl-catalog"
CATALOG = HERE.parent.parent / "catalog" / "removals.yaml"
OUTPUTS = ["catalog_builtin.c", "compat_catalog.py", "compat_exports.map", "compat_old.pyi", "compat_table.c", "compat_table.h", "compat_tombstones.h", "cxx_prelude.c", "sgl_kernel_compat_old.h"]
passed = failed = 0


def check(name, have, want):
    global passed, failed
    if have == want:
        passed += 1
    else:
        failed += 1
        print(f"FAIL {name}\n  have: {have!r}\n  want: {want!r}")


def run(*arguments):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def usage(*arguments):
    """A wrong command line: status 2 and one line that names the thing and the remedy."""
    status, out, err = run(*arguments)
    return status, out, err.count("\n"), err


TRY = "; try sgl-catalog --help\n"
check("nothing", usage(), (2, "", 1, "sgl-catalog: no command given" + TRY))
check("unknown command", usage("prove"), (2, "", 1, "sgl-catalog: unknown command: prove" + TRY))
check("unknown option", usage("lint", "--fast", CATALOG), (2, "", 1, "sgl-catalog: unknown option: --fast" + TRY))
check("option without command", usage("-x"), (2, "", 1, "sgl-catalog: unknown option: -x" + TRY))
check("lint without a file", usage("lint"), (2, "", 1, "sgl-catalog: lint needs a file" + TRY))
check("generate without a folder", usage("generate", CATALOG), (2, "", 1, "sgl-catalog: generate needs a file and a folder" + TRY))
check("docs without a folder", usage("docs", CATALOG), (2, "", 1, "sgl-catalog: docs needs a file and a folder" + TRY))
check("docs into no folder", run("docs", CATALOG, "/no/such"), (1, "", "/no/such/README.md: cannot write: No such file or directory\n"))
check("docs of a wrong one", run("docs", HERE / "data" / "lint" / "without-family.yaml", "/no/such")[0], 1)
check("generate with too much", usage("generate", CATALOG, ".", "."), (2, "", 1, "sgl-catalog: generate needs a file and a folder" + TRY))

status, out, err = run("--help")
check("help", (status, err), (0, ""))
for word in ("usage: sgl-catalog lint FILE...", "generate FILE DIR", "Exit status: 0", "1 a catalog is broken", "2 wrong command line"):
    check(f"help tells {word!r}", word in out, True)
check("help after a command", run("lint", "--help"), (0, out, ""))

good = HERE / "data" / "small.yaml"
bad = HERE / "data" / "lint" / "without-family.yaml"
unloadable = HERE / "data" / "load" / "unknown-word.yaml"
SMALL = f"{good}: 1 row, 1 removed, 0 planned\n"
FAULT = f"{bad}:9: mul: family is missing\n"
check("lint a right one", run("lint", good), (0, SMALL, ""))
check("lint a wrong one", run("lint", bad), (1, "", FAULT))
check("lint goes on", run("lint", bad, unloadable, good), (1, SMALL, FAULT + f"{unloadable}:8: unknown word gone in field status\n"))
check("lint no file", run("lint", "/no/such.yaml"), (1, "", "/no/such.yaml: cannot read: No such file or directory\n"))
status, out, err = run("lint", CATALOG)
check("lint this project's catalog", (status, err, out.count("\n")), (0, "", 1))

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    example = folder / "example.yaml"  # the documentation's own example is a right catalog
    example.write_text((CATALOG.parent / "schema.md").read_text().split("```yaml\n")[1].split("```")[0])
    check("the example of schema.md", run("lint", example), (0, f"{example}: 1 row, 1 removed, 0 planned\n", ""))
    example.unlink()

    def names():
        return sorted(p.name for p in folder.iterdir())

    check("generate", run("generate", CATALOG, folder), (0, "", ""))
    check("generated files", names(), OUTPUTS)
    built = pathlib.Path(os.environ["BUILD_DIR"]) / "gen"
    for output in OUTPUTS:  # what the build uses is what the catalog says now
        check(f"{output} is not stale", (folder / output).read_bytes(), (built / output).read_bytes())
        (folder / output).write_text("old")
    copy = folder / "copy"
    copy.mkdir()
    shutil.copy(bad, copy / "bad.yaml")
    shutil.copy(CATALOG, copy / "good.yaml")
    status, out, err = run("generate", copy / "bad.yaml", folder)
    check("a broken catalog", (status, out, err), (1, "", f"{copy}/bad.yaml:9: mul: family is missing\n"))
    status, out, err = run("generate", copy / "good.yaml", folder)
    check("no prelude beside it", (status, out, err), (1, "", f"{copy}/prelude.h.in: cannot read: No such file or directory\n"))
    status, out, err = run("generate", CATALOG, folder / "none")
    check("no such folder", (status, out, err), (1, "", f"{folder}/none/catalog_builtin.c: cannot write: No such file or directory\n"))
    check("failures wrote nothing", (names(), {(folder / o).read_text() for o in OUTPUTS}), (sorted(OUTPUTS + ["copy"]), {"old"}))

print(f"catalog.tool: {passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
