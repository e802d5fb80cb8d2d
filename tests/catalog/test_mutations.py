#!/usr/bin/env python3
"""The linter refuses a row without a source, without a release, and without a route or the reason why there is none: shown on each row
of catalog/removals.yaml. One run for each kind of fault, with the fault in all rows."""
import os, pathlib, re, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from suite import main

TOOL = pathlib.Path(os.environ["BUILD_DIR"]) / "bin" / "sgl-catalog"
TEXT = (ROOT / "catalog" / "removals.yaml").read_text()
HEAD, SYMBOLS, CHANGES = re.split(r"\nsymbols:\n|\nchanges:\n", TEXT)


def rows(part):
    return [block for block in re.split(r"(?m)^(?=  - id: )", part) if block.startswith("  - id: ")]


def id_of(row):
    return re.match(r'  - id: "?([^"\n]+)', row)[1]


def without(row, key):
    """The row without a key and what is below it."""
    return re.sub(rf"(?m)^    {key}:.*\n(?:^(?:     .*)?\n)*", "", row)


def faults(symbols, changes):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "mutated.yaml"
        file.write_text(f"{HEAD}\nsymbols:\n{''.join(symbols)}changes:\n{''.join(changes)}")
        done = subprocess.run([TOOL, "lint", file], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "mutated.yaml: " not in done.stderr, done.stderr[:500]
    found = {}
    for line in done.stderr.splitlines():
        _, _, rest = line.partition(".yaml:")
        for id in (id_of(row) for row in symbols + changes):
            if re.match(rf"\d+: {re.escape(id)}: ", rest):
                found.setdefault(id, []).append(rest.split(f"{id}: ", 1)[1])
    return found


def check(symbols, changes, mutate, wanted, least):
    mutated = {id_of(row): mutate(row) for row in symbols or changes}
    odd = {id_of(row) for row in symbols or changes if mutated[id_of(row)] != row}
    assert len(odd) >= least, len(odd)
    found = faults(*([list(mutated.values()), rows(CHANGES)] if symbols else [rows(SYMBOLS), list(mutated.values())]))
    missed = [id for id in odd if not any(wanted in what for what in found.get(id, []))]
    assert not missed, f"not refused: {missed}"


def test_the_rows_are_found():
    assert len(rows(SYMBOLS)) > 90 and len(rows(CHANGES)) > 200
    assert f"{HEAD}\nsymbols:\n{''.join(rows(SYMBOLS))}".rstrip() == TEXT.partition("\nchanges:\n")[0].rstrip()


def test_without_a_source():
    check(rows(SYMBOLS), None, lambda row: without(row, "provenance"), "provenance is missing", 95)
    check(None, rows(CHANGES), lambda row: without(row, "provenance"), "provenance is missing", 200)


def test_without_a_release():
    check(rows(SYMBOLS), None, lambda row: row if "status: planned" in row else without(row, "removals"), "but no removal says from which release on", 75)
    check(rows(SYMBOLS), None, lambda row: re.sub(r", first_without: [^,}]+", "", row), "first_without is missing", 75)
    check(rows(SYMBOLS), None, lambda row: row if "status: planned" in row else without(row, "added_in"), "added_in is missing", 75)
    check(None, rows(CHANGES), lambda row: without(row, "release"), "release is missing", 200)


def test_without_a_route_or_a_reason():
    check(rows(SYMBOLS), None, lambda row: without(row, "routes"), "routes is missing", 95)
    check(rows(SYMBOLS), None, lambda row: re.sub(r"(?m)(^      - kind: none\n)        note:.*\n(?:^          .*\n)*", r"\1", row), "needs a note that says why", 20)
    check(rows(SYMBOLS), None, lambda row: re.sub(r"(?m)^        module: .*\n", "", row), "a route needs a module and a name", 60)
    check(None, rows(CHANGES), lambda row: without(row, "reason"), "reason is missing", 200)


main(globals())
