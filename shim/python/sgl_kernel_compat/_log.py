"""SGL_KERNEL_COMPAT_LOG=calls for what only Python sees: functions of other libraries, and those that the installed package
has itself. The C library logs the calls of this project's kernels, and writes all lines: sgl_kernel_compat.h."""
import functools, os, sys

from sgl_kernel_compat import _policy


@functools.lru_cache(None)
def _library():
    """The C library, locked out of Python meanwhile; None where nothing is logged."""
    if os.environ.get("SGL_KERNEL_COMPAT_LOG") != "calls":
        return None
    import ctypes  # slow to import

    try:
        library = ctypes.PyDLL(_policy.library()._name)
    except OSError as e:
        if sys.stderr is not None:
            sys.stderr.write(f"sgl-kernel-compat: calls are not logged: {e}\n")
        return None
    library.sgl_compat_call_log.argtypes = (ctypes.c_char_p,) * 5
    return library if library.sgl_compat_call_log(None, None, None, None, None) else None


def is_on():
    return _library() is not None


def _tensors(names, args, kwargs):
    """(name, tensor) of a call's arguments, and of those in lists."""
    torch = sys.modules.get("torch")
    named = [(names[i] if i < len(names) else f"argument {i}", value) for i, value in enumerate(args)] + list(kwargs.items())
    for name, value in named:
        several = isinstance(value, (list, tuple))
        for i, one in enumerate(value if several else (value,)):
            if torch is not None and isinstance(one, torch.Tensor):
                yield (f"{name}[{i}]" if several else name), one


def _facts(names, args, kwargs):
    import json

    tensors, more = [], {}
    for name, tensor in _tensors(names, args, kwargs):
        fact = {"name": name, "dtype": str(tensor.dtype).rpartition(".")[2], "device": str(tensor.device), "shape": list(tensor.shape)}
        if tensor.layout is sys.modules["torch"].strided:
            fact["strides"] = list(tensor.stride())
        tensors.append(fact)
        if tensor.is_cuda and "stream" not in more:
            more = {"device": fact["device"], "stream": hex(sys.modules["torch"].cuda.current_stream(tensor.device).cuda_stream)}
    if tensors and not more:
        more = {"device": tensors[0]["device"]}
    return json.dumps({**more, "tensors": tensors}, separators=(",", ":"))[1:-1]


def write(symbol, face, outcome, message, names=(), args=(), kwargs={}):
    """One line; never fails. names: of the parameters."""
    library = _library()
    if library is None:
        return
    try:
        facts = _facts(names, args, kwargs)
    except Exception:  # tensors without sizes or strides, as some subclasses are
        facts = '"tensors":[]'
    texts = (text and text.encode(errors="replace") for text in (symbol, face, outcome, message, facts))
    library.sgl_compat_call_log(*texts)


def run(symbol, face, function, names, args, kwargs):
    try:
        result = function(*args, **kwargs)
    except BaseException as e:
        write(symbol, face, "error", f"{type(e).__name__}: {e}", names, args, kwargs)
        raise
    write(symbol, face, "ok", None, names, args, kwargs)
    return result


_logged: dict = {}  # id of a function -> (the function, what logs its calls)


def logged(symbol, function):
    """The function itself where nothing is logged, else one that logs each call. A class stays: code asks for its instances."""
    if _library() is None or not callable(function) or isinstance(function, type):
        return function
    if id(function) not in _logged:
        _logged.setdefault(id(function), (function, _logging(symbol, function)))
    return _logged[id(function)][1]


def _logging(symbol, function):
    import inspect  # slow to import

    torch = sys.modules.get("torch")
    is_traced = torch.compiler.is_compiling if hasattr(torch, "compiler") else lambda: False
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []

    @functools.wraps(function)
    def call(*args, **kwargs):
        if is_traced():
            return function(*args, **kwargs)
        return run(symbol, "python", function, names, args, kwargs)

    return call
