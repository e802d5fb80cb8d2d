"""torch.ops.sgl_kernel.NAME for the deleted operators: registered by the C library, warned about from here."""
import atexit, ctypes, sys

from sgl_kernel_compat import _answers, _warn
from sgl_kernel_compat._catalog import PACKAGE

SHOWN, RAISE, PRINT = 0, 1, 2  # sgl_compat_warning_action


class _Warning(ctypes.Structure):
    _fields_ = [("call", ctypes.c_int)] + [(name, ctypes.c_char_p) for name in ("symbol", "replacement", "caller", "text")]


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Warning), ctypes.c_void_p)
def _hook(warning, user):
    """Called inside the first call of an operator. Python's exceptions cannot cross C: the C library makes a RuntimeError
    with the same text of RAISE."""
    try:
        w = warning.contents
        if w.call != 2:  # a C++ caller has no line of Python
            return PRINT
        name = w.symbol.decode()
        told = _warn.from_operator(f"torch.ops.{PACKAGE}.{name}", _answers.warning_text(f"torch.ops.{PACKAGE}.{name}", name))
        return SHOWN if told else PRINT
    except Warning:
        return RAISE
    except Exception:
        return PRINT


_hooked = False


def register(has_python_name):
    """Register the operators that are missing. To be called only after sgl_kernel's own library is loaded: an old wheel
    that finds its operators taken ends the process. has_python_name(name): does the installed package still have the
    Python function? Then it is an old wheel, which will register the operator, if it has not done so yet."""
    global _hooked
    if _answers.why_not_jit():
        return
    import torch

    from sgl_kernel_jit import _library

    library, index = _library.compat(), 0
    while (name := library.sgl_compat_op_name(index)) is not None:
        index += 1
        if hasattr(getattr(torch.ops, PACKAGE), name.decode()) or has_python_name(name.decode()):
            continue
        if not _hooked:
            library.sgl_compat_set_warning_hook(_hook, None)
            atexit.register(library.sgl_compat_set_warning_hook, None, None)  # Python may not be called after its end
            _hooked = True
        why = _library.message_of(library.sgl_compat_register_op, name)
        if why and sys.stderr is not None:  # `import sgl_kernel` goes on
            sys.stderr.write(f"sgl-kernel-compat: torch.ops.{PACKAGE}.{name.decode()} is not served: {why}\n")
