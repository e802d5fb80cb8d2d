"""What test scripts share: a test is a function test_*, and the closing line is the one that check.py reads."""
import pathlib, sys, traceback


class Skip(Exception):
    """Raised by a test that cannot run here, with the reason."""


def _name():
    return pathlib.Path(sys.argv[0]).stem.removeprefix("test_")


def skip_all(reason):
    """Ends the process: none of its tests can run here."""
    print(f"skip {_name()}.all: {reason}\n{_name()}: 0 passed, 0 failed, 1 skipped")
    sys.exit(0)


def cuda_torch():
    """torch, with a GPU; else the end of the process."""
    try:
        import torch
    except ImportError as e:
        skip_all(f"no torch: {e}")
    if not torch.cuda.is_available():
        skip_all(f"torch {torch.__version__} sees no GPU")
    return torch


def main(tests):
    """Runs the functions test_* of a dictionary in its order, prints the closing line, and ends the process."""
    name = _name()
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
