"""Deprecation warnings at the user's line: once for each name and line, on one rank of a job."""
import os, sys, warnings

from sgl_kernel_compat._errors import SglKernelDeprecationWarning

_seen = set()  # (file, line, name)


def _silent():
    """Switched off, or one of the other ranks of a job."""
    return os.environ.get("SGL_KERNEL_COMPAT_WARN") == "off" or os.environ.get("RANK", "0") != "0"


def has_warned(name, frame):
    return (frame.f_code.co_filename, frame.f_lineno, name) in _seen


def user_frame(frame):
    """The nearest frame that is not torch's, nor of code that torch has generated, nor of this package or the import
    system; None in a thread that has none."""
    file = getattr(sys.modules.get("torch"), "__file__", None)
    torch = os.path.join(os.path.dirname(file), "") if file else "<eval_with_key"  # some generated code says that it lies there
    while frame is not None:
        package = (frame.f_globals.get("__name__") or "").partition(".")[0]
        if package not in ("torch", "sgl_kernel_compat", "sgl_kernel_jit", "importlib") and not frame.f_code.co_filename.startswith((torch, "<eval_with_key")):
            break
        frame = frame.f_back
    return frame


def warn(name, text, frame):
    """Raises the warning when a filter says so; then the same line warns again."""
    key = (frame.f_code.co_filename, frame.f_lineno, name)
    if key in _seen or _silent():
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__") or "<unknown>"  # a None is taken for the end of the process: no warning
    warnings.warn_explicit(text, SglKernelDeprecationWarning, key[0], key[1], module, registry)
    _seen.add(key)


def from_operator(name, text):
    """For the hook of the C library: torch.ops was called. True when somebody was told, False to have it printed."""
    if _silent():
        return True
    frame = user_frame(sys._getframe(1))
    if frame is None:
        return False
    warn(name, text, frame)
    return True
