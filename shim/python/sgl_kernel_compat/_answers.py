"""What a deleted name is now: this project's kernel, the function that the catalog routes to, or an error with advice."""
import functools, importlib, sys

from sgl_kernel_compat import _log, _policy, _usage, _warn
from sgl_kernel_compat._catalog import PACKAGE, PLACES, SYMBOLS
from sgl_kernel_compat._errors import SglKernelAttributeError, SglKernelImportError

_found: dict = {}  # id -> function: all places of a name give one object


class Gone(Exception):
    """This answer cannot be had; the texts say why. cause: the one of them that is of this project's own kernel."""

    cause = ""


def warning_text(name, facts):
    return f"{name} is deprecated, {PACKAGE} has dropped it in {facts['first_without']} ({facts['change']}): {facts['advice']}"


def _fate(facts):
    note = f" ({facts['note'].rstrip('.')})" if facts["note"] else ""
    return f"in {facts['first_without']} ({facts['change']}), the last release with it is {facts['last_with']}; {facts['advice']}{note}"


def gone_text(name, facts, why=(), cause=""):
    """why: what each route fails with. cause: what keeps this project's own kernel from running, which is told first."""
    first = f"{name} cannot run here: {cause}; " if cause else f"{name} is gone: "
    return f"{first}{PACKAGE} has dropped it {_fate(facts)}" + "".join(f"; {reason}" for reason in dict.fromkeys(why) if reason != cause)


def module_text(module, names):
    """names: {attribute: id}"""
    return f"No module named {module!r}: " + "; ".join(f"{PACKAGE} has dropped {name} {_fate(SYMBOLS[id])}" for name, id in names.items())


def forbidden_text(name, facts, id):
    policy = _policy.of(id)
    return f"{warning_text(name, facts)}; its stage is {policy.stage} ({policy.origin})"


def why_not_jit():
    """Why the kernels of this project certainly cannot run in this process; "" when they may."""
    try:
        import torch, sgl_kernel_jit

        if torch.version.cuda is None and sgl_kernel_jit.get_backend() != "reference":
            return "sgl_kernel_jit needs CUDA, and this torch is built without"
    except ImportError as e:
        return str(e)
    except Exception as e:  # a torch that is none
        return f"sgl_kernel_jit cannot be imported: {type(e).__name__}: {e}"
    return ""


def is_left_behind(version, facts):
    """Does a release of sgl_kernel for CUDA certainly lack this, so that a Python function of the name is a leftover?"""
    try:
        return bool(version) and _release(version) >= _release(facts["first_without"])
    except Gone:  # the number of a fork
        return False


def _release(text):
    """A release number of PEP 440's subset as something that compares; the local part does not count."""
    import re

    match = re.fullmatch(r"(\d+(?:\.\d+)*)(?:(a|b|rc)(\d+))?(?:\.post(\d+))?(?:\.dev(\d+))?(?:\+.*)?", text)
    if not match:
        raise Gone(f"{text!r} is no release number")
    number, pre, pre_number, post, dev = match.groups()
    parts = [int(part) for part in number.split(".")]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    early = {"a": 1, "b": 2, "rc": 3}.get(pre, 0 if dev and not post else 4)
    return parts, early, int(pre_number or 0), int(post) if post else -1, int(dev is None), int(dev or 0)


@functools.lru_cache(None)
def _sglang():
    """The installed release; "" when there is none."""
    from importlib import metadata  # slow to import

    try:
        return metadata.version("sglang")
    except metadata.PackageNotFoundError:
        return ""


def _check_sglang(since, until):
    """Raises Gone when the installed sglang is not in a route's range."""
    installed = _sglang()
    if not installed:
        raise Gone("sglang is not installed")
    release = _release(installed)
    if release < _release(since) or (until and release >= _release(until)):
        raise Gone(f"sglang {since} and newer" + (f", before {until}," if until else "") + f" would have it, {installed} is installed")


def parameters(symbol):
    """The names of an old function's parameters, in their order."""
    import ast

    arguments = ast.parse(f"def _{SYMBOLS[symbol]['signature']}: pass").body[0].args
    return [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]


def _adapter(symbol, target):
    """A function with the old signature that calls target by keywords."""
    import __future__, ast, typing

    tree = ast.parse(f"def _make(_target):\n def {symbol}{SYMBOLS[symbol]['signature']}: pass\n return {symbol}")
    tree.body[0].body[0].body = ast.parse(f"return _target({', '.join(f'{name}={name}' for name in parameters(symbol))})").body
    # The target is in a closure and not a global: torch.compile looks for globals in the module of the function's name,
    # and that is the package's, for pickle.
    scope = {"__name__": max((module for (module, _), of in PLACES.items() if of == symbol), key=len), "ScalarType": typing.Any}
    scope.update((name, getattr(typing, name)) for name in ("Any", "Callable", "Dict", "List", "Optional", "Tuple", "Union"))
    if "torch" in sys.modules:  # defaults such as torch.bfloat16
        scope["torch"] = sys.modules["torch"]
    exec(compile(ast.fix_missing_locations(tree), f"<{__name__}>", "exec", __future__.annotations.compiler_flag, True), scope)
    made = scope["_make"](target)
    try:
        made.__annotations__ = {of: eval(text, scope) for of, text in made.__annotations__.items()}
    except (NameError, AttributeError):  # types that are not here: the annotations stay text
        pass
    made.__qualname__ = symbol
    made.__doc__ = f"{PACKAGE}'s deleted {symbol}; {SYMBOLS[symbol]['advice']}."
    return made


def _follow(symbol, kind, module, name, since, until):
    if kind == "jit":
        why = why_not_jit()
        if why:
            raise Gone(why)
    elif kind == "sglang":
        _check_sglang(since, until)
    try:
        target = getattr(importlib.import_module(module), name)
    except Exception as e:  # whatever a foreign module fails with
        raise Gone(f"{module}.{name} cannot be imported: {type(e).__name__}: {e}") from None
    made = _adapter(symbol, target)
    return made if kind == "jit" else _log.logged(symbol, made)  # the C library logs its kernels


def find(symbol):
    """The function that answers for a name. Raises Gone with all reasons."""
    if symbol in _found:
        return _found[symbol]
    all_of_them = Gone()
    for route in SYMBOLS[symbol]["routes"]:
        try:
            return _found.setdefault(symbol, _follow(symbol, *route))
        except Gone as gone:
            all_of_them.args += (str(gone),)
            if route[0] == "jit":
                all_of_them.cause = str(gone)
    raise all_of_them


def may_have(symbol):
    """Could a route lead somewhere? Imports nothing but the kernels of this project."""
    from importlib.util import find_spec

    for kind, module, _, since, until in SYMBOLS[symbol]["routes"]:
        try:
            if kind == "sglang":
                _check_sglang(since, until)
            if not why_not_jit() if kind == "jit" else find_spec(module.partition(".")[0]):
                return True
        except Gone:
            pass
    return False


def _is_at(frame, operation, argument=None):
    """Is the frame at this operation of Python's byte code?"""
    import opcode

    code, at = frame.f_code.co_code, frame.f_lasti
    while at >= 0 and code[at] == opcode.EXTENDED_ARG:  # before Python 3.11
        at += 2
    return at >= 0 and code[at] == opcode.opmap.get(operation) and argument in (None, code[at + 1])


def _is_star(frame):
    """Is the frame at `from module import *`, which asks for all names, wanted or not?"""
    return _is_at(frame, "IMPORT_STAR") or _is_at(frame, "CALL_INTRINSIC_1", 2)  # before Python 3.12, and since


def is_written(frame):
    """Is the frame at `object.name`, and not in a call of getattr or hasattr? False for C code without a frame."""
    return frame is not None and (_is_at(frame, "LOAD_ATTR") or _is_at(frame, "LOAD_METHOD"))


def _is_the_packages(frame):
    return ((frame.f_globals.get("__name__") or "") + ".").startswith(f"{PACKAGE}.")


def _refuse(module, text, frame):
    if frame is not None and _is_at(frame, "IMPORT_FROM"):  # the second half of `from module import name`
        raise SglKernelImportError(text, name=module) from None
    raise SglKernelAttributeError(text) from None


def _has_kernel(symbol):
    return any(kind == "jit" for kind, *_ in SYMBOLS[symbol]["routes"])


def is_staged(symbol):
    """Does the policy speak of a name that the installed package has itself?"""
    policy = _policy.of(symbol)
    return policy.is_set or (policy.serve in ("jit", "reference") and _has_kernel(symbol))


def _refusing(module, symbol, value):
    """For `from module import *`, which asks for all names, and one must not take the others away: the error comes with the
    call, if the stage is still so."""

    def refused(*args, **kwargs):
        policy = _policy.of(symbol)
        if not _policy.is_forbidden(symbol):
            return value(*args, **kwargs)
        _usage.access(symbol, policy.stage, sys._getframe(1))
        raise SglKernelImportError(forbidden_text(f"{module}.{symbol}", SYMBOLS[symbol], symbol), name=module)

    return functools.update_wrapper(refused, value)


def own(module, name, symbol, frame, is_told=False):
    """What frame gets for module.name, which the installed package has, as a function of the package's value, and its place
    for _usage.again: by a stage, if one is set, or the kill switch. The package's own code is not told. is_told: this access
    has been counted, and refused, before."""
    where, facts, policy = f"{module}.{name}", SYMBOLS[symbol], _policy.of(symbol)
    statement = _warn.statement(frame)
    if statement is not None and _is_the_packages(statement):
        return lambda value: value, None

    def count(stage):
        return None if is_told else _usage.access(symbol, stage, frame)

    if policy.is_set and _policy.is_forbidden(symbol):
        if statement is not None and _is_star(statement):
            _warn.at_access(where, forbidden_text(where, facts, symbol), frame)
            return functools.partial(_refusing, module, symbol), None
        count(policy.stage)
        _refuse(module, forbidden_text(where, facts, symbol), frame)
    make = functools.partial(_log.logged, symbol)
    if policy.serve in ("jit", "reference") and _has_kernel(symbol):
        try:
            function = find(symbol)
        except Gone as gone:
            count("tombstone")
            _refuse(module, f"{gone_text(where, facts, gone.args, gone.cause)}; the policy serves it by {policy.serve} ({policy.serve_origin})", frame)
        make = lambda value: function
    place = count(policy.stage if policy.is_set else "silent")
    if policy.is_set and policy.stage == "warn":
        _warn.at_access(where, warning_text(where, facts), frame)
    return make, place


def answer(module, name, symbol, frame):
    """The value of module.name, asked for by frame, and its place for _usage.again. Never inside a traced call: only access
    warns. The package's own code is served in silence, and not counted."""
    where, facts, policy = f"{module}.{name}", SYMBOLS[symbol], _policy.of(symbol)
    statement = _warn.statement(frame)
    its_own = statement is not None and _is_the_packages(statement)

    def count(stage):
        return None if its_own else _usage.access(symbol, stage, frame)

    if not its_own and _policy.is_forbidden(symbol):
        count(policy.stage)
        _refuse(module, forbidden_text(where, facts, symbol), frame)
    if policy.serve == "old":
        count("error")
        _refuse(module, f"{gone_text(where, facts)}; the policy serves it by an old library only ({policy.serve_origin})", frame)
    try:
        found = find(symbol)
    except Gone as gone:
        count("tombstone")
        _refuse(module, gone_text(where, facts, gone.args, gone.cause), frame)
    place = count("silent" if policy.stage == "silent" else "warn")
    if policy.stage != "silent" and not its_own:
        _warn.at_access(where, warning_text(where, facts), frame)
    return found, place
