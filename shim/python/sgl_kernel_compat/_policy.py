"""The stage of a name: silent, warn or error. A name without one warns where this package serves it, and is left alone where
the installed sgl_kernel has it."""
import os, sys

from sgl_kernel_compat._catalog import OPERATORS, SYMBOLS

VARIABLE = "SGL_KERNEL_COMPAT_STAGE"  # "dsv3_router_gemm=error,awq_dequantize=silent"
STAGES = ("silent", "warn", "error")
NAMES = {*SYMBOLS, *(facts["id"] for facts in OPERATORS.values())}

_stages: dict = {}  # id -> (stage, where it was set)
changed: list = []  # functions to call when a stage was set


def _check(name, stage):
    if name not in NAMES:
        raise ValueError(f"{name!r} is no deleted name of sgl_kernel")
    if stage not in STAGES:
        raise ValueError(f"stage {stage!r} of {name} is none of {', '.join(STAGES)}")


def _read_environment():
    for part in filter(None, (part.strip() for part in os.environ.get(VARIABLE, "").split(","))):
        name, _, stage = (word.strip() for word in part.partition("="))
        try:
            _check(name, stage)
            _stages[name] = stage, VARIABLE
        except ValueError as e:  # loud, but the program goes on: torch's import brings us here
            if sys.stderr is not None:
                sys.stderr.write(f"sgl-kernel-compat: {VARIABLE}: {e}\n")


_read_environment()


def set_stage(name, stage):
    """Set the stage of a name of the catalog, over the environment's, from its next access on. An operator that has been
    called before keeps the stage that it had then."""
    _check(name, stage)
    _stages[name] = stage, "set_stage"
    for notify in changed:
        notify()


def get_stage(name):
    """(stage, where it was set); (None, "default") when nobody has set one."""
    if name not in NAMES:
        raise ValueError(f"{name!r} is no deleted name of sgl_kernel")
    return _stages.get(name, (None, "default"))
