"""Deprecation warnings at the user's line: once for each name and line, on one rank of a job."""
import os, sys, warnings

from sgl_kernel_compat._errors import SglKernelDeprecationWarning

_seen = set()  # (file, line, name)


def _silent():
    """Switched off, or one of the other ranks of a job."""
    return os.environ.get("SGL_KERNEL_COMPAT_WARN") == "off" or os.environ.get("RANK", "0") != "0"


def is_machinery(frame):
    """Is this frame torch's, of the import system, or code that torch has generated?"""
    package, file = (frame.f_globals.get("__name__") or "").partition(".")[0], frame.f_code.co_filename
    if package in ("torch", "sgl_kernel_compat", "sgl_kernel_jit", "importlib") or file.startswith("<eval_with_key"):
        return True
    torch = getattr(sys.modules.get("torch"), "__file__", None)  # some generated code says that it lies there
    return torch is not None and file.startswith(os.path.join(os.path.dirname(torch), ""))


def user_frame(frame):
    """The nearest frame outside of torch and of this package; None in a thread that has none."""
    while frame is not None and is_machinery(frame):
        frame = frame.f_back
    return frame


def warn(name, text, frame):
    """Raises the warning when a filter says so; then the same line warns again."""
    key = (frame.f_code.co_filename, frame.f_lineno, name)
    if key in _seen or _silent():
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, SglKernelDeprecationWarning, key[0], key[1], frame.f_globals.get("__name__"), registry)
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
