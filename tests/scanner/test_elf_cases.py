#!/usr/bin/env python3
"""The ELF cases of the contract: tests/cases/elf/*/build.sh makes the files, `audit --format tsv` gives exactly the rows."""
import pathlib, subprocess, tempfile
from tool import equal, main, run

CASES = pathlib.Path(__file__).resolve().parent.parent / "cases" / "elf"


def case(folder):
    def test():
        with tempfile.TemporaryDirectory(prefix="sgl-migrate-test-") as out:
            subprocess.run(["sh", str(folder / "build.sh"), out], check=True, timeout=60)
            done = run("audit", "--kernel", "0.4.6", "--format", "tsv", out)
            want = (folder / "expected-elf.tsv").read_text()
            equal(done.out, want)
            equal(bool(done.returncode & 4), "not-analysed" in want)
            equal(bool(done.err), "not-analysed" in want)
    test.__name__ = "test_" + folder.name
    return test


TESTS = {f"test_{folder.name}": case(folder) for folder in sorted(CASES.iterdir()) if (folder / "build.sh").exists()}
globals().update(TESTS)


def test_there_are_cases():
    equal(len(TESTS) >= 12, True)


main(globals())
