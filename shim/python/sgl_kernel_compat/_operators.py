"""torch.ops.sgl_kernel.NAME for the deleted operators: the C library registers and serves what this project has, and they
warn from here; the others exist too, and their call goes where the catalog routes it, or is an error with advice. Guards by
hasattr do not find those, and may define them."""
import atexit, ctypes, functools, os, sys, threading

from sgl_kernel_compat import _answers, _log, _policy, _usage, _warn
from sgl_kernel_compat._catalog import OPERATORS, PACKAGE, SYMBOLS
from sgl_kernel_compat._errors import SglKernelAttributeError

SHOWN, RAISE, PRINT = 0, 1, 2  # sgl_compat_warning_action


class _Warning(ctypes.Structure):
    _fields_ = [("call", ctypes.c_int)] + [(name, ctypes.c_char_p) for name in ("symbol", "replacement", "caller", "text")]
    _fields_ += [("error", ctypes.c_void_p), ("error_size", ctypes.c_size_t)]


def _raise(warning, text):
    """Python's exceptions cannot cross C: the C library makes a RuntimeError with this text."""
    data = text.encode()[: warning.error_size - 1].decode(errors="ignore").encode()
    ctypes.memmove(warning.error, data + b"\0", len(data) + 1)
    return RAISE


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Warning), ctypes.c_void_p)
def _hook(warning, user):
    """Called inside the first call of an operator, and of a C++ function, whose caller has no line of Python."""
    try:
        w = warning.contents
        if w.call != 2:
            return SHOWN if _warn.silent() else PRINT
        name = next(name for name, facts in OPERATORS.items() if facts["id"] == w.symbol.decode())
        facts, where = OPERATORS[name], f"torch.ops.{PACKAGE}.{name}"
        text = _answers.warning_text(where, facts)
        try:
            return SHOWN if _warn.from_operator(where, text) else PRINT
        except Warning:
            return _raise(w, text)
    except Exception:
        return PRINT


@ctypes.CFUNCTYPE(None, ctypes.c_char_p)
def _sampler(symbol):
    """Called inside some of the calls of the operators."""
    try:
        _usage.sample(symbol.decode(), sys._getframe(1))
    except Exception:  # a thread without a line of Python
        pass


_hooked = False


def _serve(name):
    """Why the C library cannot serve an operator; "" when it does."""
    global _hooked
    from sgl_kernel_jit import _library

    library = _library.compat()
    if not _hooked:
        library.sgl_compat_set_warning_hook(_hook, None)
        library.sgl_compat_set_usage_sampler(_sampler)
        atexit.register(library.sgl_compat_set_warning_hook, None, None)  # Python may not be called after its end
        atexit.register(library.sgl_compat_set_usage_sampler, None)
        _hooked = True
    return _library.message_of(library.sgl_compat_register_op, name.encode())


_registered: set = set()  # names that the C library serves
_dead: dict = {}  # name -> the text of its error
_kept: dict = {}  # name -> the torch.library.Library that keeps the dead operator; without it there is none
_lock = threading.RLock()  # of a dead operator's change from kept to handed out, or to not there
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
# Torch tells this place to who defines a dead operator himself. In brackets, nobody looks for a file of this name.
_PLACE = "<sgl-kernel-compat, which leaves an operator to others where SGL_KERNEL_COMPAT_POLICY has NAME=silent>"
_library = compile("torch.library.Library(PACKAGE, 'FRAGMENT')", _PLACE, "eval")


def _bury(name, why):
    """Register an operator whose call is an error, or is routed to a function of another library."""
    import torch

    if not _dead:
        _hide(getattr(torch.ops, PACKAGE))
    _dead[name] = _answers.gone_text(f"torch.ops.{PACKAGE}.{name}", OPERATORS[name], cause=why)
    _define(name)


def _define(name):
    """On all devices but the meta device, so that torch.library.register_fake takes the operator, as it took the old one. One
    that is routed is on those devices only that the old ones were on, so that fake tensors do not come to it."""
    import torch

    def gone(*args):
        _usage.operator(OPERATORS[name]["id"], "tombstone")
        _fail(name, _dead[name], args)

    library = eval(_library, {"torch": torch, "PACKAGE": PACKAGE})
    library.define(OPERATORS[name]["schema"])
    if _is_routed(name):
        _routed.add(name)
        for key in ("CUDA", "CPU"):
            library.impl(name, functools.partial(_call, name), key)
    else:
        library.impl(name, gone, "CompositeExplicitAutograd")
    _kept[name] = library


def _serve_in_python(name):
    """C registers no operator that returns a tensor: the function of this project's own kernel is called."""
    import torch

    library = torch.library.Library(PACKAGE, "FRAGMENT")
    library.define(OPERATORS[name]["schema"])
    for key in ("CUDA", "CPU"):
        library.impl(name, functools.partial(_call, name), key)
    _kept[name] = library
    return ""


def _is_routed(name):
    """Is there another operator that takes the same? Or may a route of the Python function lead somewhere, and does the operator
    take the same in the same order?"""
    import torch

    symbol, other = OPERATORS[name]["id"], OPERATORS[name]["operator"]
    if other:
        return hasattr(getattr(torch.ops, PACKAGE), other)
    if not any(kind != "jit" for kind, *_ in SYMBOLS.get(symbol, {}).get("routes", ())) or not _answers.may_have(symbol):
        return False
    return _parameters(name) == _answers.parameters(symbol)


_routed: set = set()  # names
_told: set = set()  # operators whose call was warned about


def _call(name, *args):
    """A routed operator."""
    import torch

    symbol, other, where = OPERATORS[name]["id"], OPERATORS[name]["operator"], f"torch.ops.{PACKAGE}.{name}"
    _usage.operator(symbol, _policy.of(symbol).stage)
    if _policy.is_forbidden(symbol):
        _fail(name, _answers.forbidden_text(where, OPERATORS[name], symbol), args)
    try:
        function = getattr(getattr(torch.ops, PACKAGE), other) if other else _answers.find(symbol)
    except _answers.Gone as gone:
        _fail(name, _answers.gone_text(where, OPERATORS[name], gone.args), args)
    if _policy.of(symbol).stage != "silent" and name not in _told:
        text = _answers.warning_text(where, OPERATORS[name])
        if not _warn.from_operator(where, text):
            _warn.to_stderr(where, text)
        _told.add(name)
    if not _log.is_on():
        return function(*args)
    return _log.run(symbol, "operator", getattr(function, "__wrapped__", function), _parameters(name), args, {})


def _fail(name, text, args):
    if _log.is_on():
        _log.write(OPERATORS[name]["id"], "operator", "error", text, _parameters(name), args)
    raise RuntimeError(text) from None


def _parameters(name):
    import torch

    return [argument.name for argument in torch._C.parse_schema(f"{PACKAGE}::{OPERATORS[name]['schema']}").arguments]


def _hide(namespace):
    """Code that says torch.ops.sgl_kernel.NAME gets the dead operator, and its call has the advice. hasattr and getattr,
    which ask whether there is one, get an AttributeError, and from then on it is true: who asked may define it himself,
    also in C++. A dead operator that has been handed out stays, since torch may not take it back."""
    kind = type(namespace)
    handed_out = {}

    def __getattr__(self, name):
        if name not in _dead:
            return kind.__getattr__(self, name)
        written = _answers.is_written(sys._getframe().f_back)
        with _lock:
            if name not in handed_out:
                if not written:
                    _kept.pop(name, None)
                if name not in _kept:
                    try:
                        return kind.__getattr__(self, name)  # somebody's own; torch keeps it for the next time
                    except AttributeError:
                        pass
                if written:
                    if name not in _kept:
                        _define(name)
                    if name in _routed:
                        return kind.__getattr__(self, name)  # as any operator from now on
                    handed_out[name] = kind.__getattr__(self, name)
                    # torch keeps it in both: for hasattr too, and torch.export asks for each of a list.
                    vars(self).pop(name, None)
                    getattr(self, "_dir", [name]).remove(name)
        if not written:
            raise SglKernelAttributeError(_dead[name])
        return handed_out[name]

    # The operators of the namespace take their module from it.
    namespace.__class__ = type(kind.__name__, (kind,), {"__getattr__": __getattr__, "__module__": kind.__module__})


def register(present, version):
    """Register the operators that are missing. To be called only after sgl_kernel's own library is loaded: an old wheel
    that finds its operators taken ends the process. present: the ids of which the installed package has the Python
    function. Then it is an old wheel, which will register the operator, if it has not done so yet; but releases from
    0.4.8 on have functions whose operator is gone. version: the package's, or None. A name whose stage is silent is left
    to whoever defines the operator himself, if nothing here serves it."""
    import torch

    why_not = _answers.why_not_jit()
    for name, facts in OPERATORS.items():
        if name in _dead or name in _registered:
            continue
        is_old = facts["id"] in present and not (torch.version.cuda and _answers.is_left_behind(version, facts))
        if is_old or hasattr(getattr(torch.ops, PACKAGE), name):
            _usage.set_counted(facts["id"], _usage.OPERATOR, False)  # torch calls it without us
            continue
        served = any(kind == "jit" for kind, *_ in SYMBOLS.get(facts["id"], {}).get("routes", ()))
        try:
            serve = _serve if facts["schema"].endswith("-> ()") else _serve_in_python
            why = (why_not or serve(name)) if served else ""
            if served and not why:
                _registered.add(name)
            if why or (not served and _policy.of(facts["id"]).stage != "silent"):
                _bury(name, why)
        except Exception as e:  # `import sgl_kernel` goes on
            if name in _kept:
                continue  # another thread has been here
            if sys.stderr is not None:
                sys.stderr.write(f"sgl-kernel-compat: torch.ops.{PACKAGE}.{name} is not registered: {type(e).__name__}: {e}\n")
