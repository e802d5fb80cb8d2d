"""What the scenarios of test_package.py run in: paths, closing line, helpers.

usage: checks.py SCENARIO PATH...      runs scenario_SCENARIO.py with the paths in front of sys.path"""
import os, runpy, sys, warnings

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from suite import Skip, main


def raises(kind, part, f, *args, **kw):
    try:
        f(*args, **kw)
    except kind as e:
        assert part in str(e), f"{part!r} not in {e!r}"
        return e
    raise AssertionError(f"no {kind.__name__}")


def warned(f):
    """The result of f, and the warnings of this package as (line, text)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = f()
    return result, [(w.lineno, str(w.message)) for w in caught if w.category.__name__ == "SglKernelDeprecationWarning"]


def operands(torch, tokens, n, k=7168):
    a, w = torch.randn(tokens, k, dtype=torch.bfloat16), torch.randn(n, k, dtype=torch.bfloat16)
    return a, w, a.double() @ w.double().t()


def assert_close(torch, output, want):
    """float32 sums round to 24 bits, bfloat16 results to 8: both relative to the result itself."""
    step = 2.0 ** -8 if output.dtype == torch.bfloat16 else 2.0 ** -22
    error = ((output.double() - want).abs() / want.abs().clamp_min(1)).max().item() if output.numel() else 0.0
    assert output.shape == want.shape and error <= step, f"relative error {error} over {step}"


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:0] = sys.argv[2:]
    main(runpy.run_path(os.path.join(here, f"scenario_{sys.argv[1]}.py"), run_name="__main__"))
