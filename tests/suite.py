"""What test scripts share: a test is a function test_*, and the closing line is the one that check.py reads."""
import pathlib, sys, traceback


class Skip(Exception):
    """Raised by a test that cannot run here, with the reason."""


def main(tests):
    """Runs the functions test_* of a dictionary in its order, prints the closing line, and ends the process."""
    name = pathlib.Path(sys.argv[0]).stem.removeprefix("test_")
    passed = failed = skipped = 0
    for test, function in [(n, f) for n, f in tests.items() if n.startswith("test_") and callable(f)]:
        try:
            function()
            passed += 1
        except Skip as reason:
            skipped += 1
            print(f"skip {name}.{test.removeprefix('test_')}: {reason}", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL {name}.{test.removeprefix('test_')}\n{traceback.format_exc()}", flush=True)
    print(f"{name}: {passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""), flush=True)
    sys.exit(1 if failed or not passed + skipped else 0)
