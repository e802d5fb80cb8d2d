"""The policy of a deleted name: its stage, and which code answers. The C library reads and knows it, for C++ and for torch's
operators too. It is loaded when there is something to read or to set; until then all stages are the built-in ones."""
import functools, os, sys
from collections import namedtuple

from sgl_kernel_compat._catalog import STAGES

STAGE_NAMES = ("silent", "warn", "error", "tombstone")  # sgl_compat_stage
SERVE_NAMES = ("auto", "jit", "old", "reference")  # sgl_compat_serve
Policy = namedtuple("Policy", "stage is_set origin serve serve_origin")

changed: list = []  # functions to call when something was set
_known = None  # id -> Policy
_is_set = False  # the C library has something that was set here


def _has_sources():
    """Is there a policy that the C library would read? It says itself where it looks: sgl_kernel_compat.h."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    files = (os.path.join(folder, "sgl-kernel-compat", "policy") for folder in ("/etc", home))
    return bool(os.environ.get("SGL_KERNEL_COMPAT_POLICY") or os.environ.get("SGL_KERNEL_COMPAT_POLICY_FILE")) or any(map(os.path.lexists, files))


def _path(name):
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "sgl_kernel_jit", "lib")
    return os.path.join(folder, f"libsgl_kernel_{name}.so.0")


def is_loaded():
    """Has anybody loaded the C library?"""
    import ctypes

    try:
        return bool(ctypes.CDLL(_path("compat"), mode=os.RTLD_NOW | os.RTLD_NOLOAD))
    except OSError:
        return False


@functools.lru_cache(None)
def library():
    """The C library; raises OSError. Not by sgl_kernel_jit, whose import brings in torch. To load it twice is to load it once."""
    import ctypes

    ctypes.CDLL(_path("jit"), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    library = ctypes.CDLL(_path("compat"), mode=os.RTLD_NOW | os.RTLD_LOCAL)

    class Answer(ctypes.Structure):  # sgl_compat_policy
        _fields_ = [("stage", ctypes.c_int), ("is_set", ctypes.c_int), ("serve", ctypes.c_int), ("origin", ctypes.c_char * 512)]
        _fields_ += [("serve_origin", ctypes.c_char * 512)]

    library.answer = Answer
    return library


def _ask(symbol):
    from ctypes import byref

    answer = library().answer()
    library().sgl_compat_policy_get(symbol.encode(), byref(answer), None, 0)
    origins = (text.decode(errors="replace") for text in (answer.origin, answer.serve_origin))
    return Policy(STAGE_NAMES[answer.stage], bool(answer.is_set), next(origins), SERVE_NAMES[answer.serve], next(origins))


def _read():
    if _is_set or _has_sources():
        try:
            return {name: _ask(name) for name in STAGES}
        except OSError as e:
            if sys.stderr is not None:
                sys.stderr.write(f"sgl-kernel-compat: no policy is read, all stages are the built-in ones: {e}\n")
    return {name: Policy(stage, False, "the catalog", "auto", "the catalog") for name, stage in STAGES.items()}


def of(symbol):
    """The policy of a name of the catalog."""
    global _known
    if symbol not in STAGES:
        raise ValueError(f"{symbol!r} is no deleted name of sgl_kernel")
    known = _known
    if known is None:
        known = _known = _read()
    return known[symbol]


def is_forbidden(symbol):
    """By the policy, and not because nothing could answer."""
    policy = of(symbol)
    return policy.stage == "error" or (policy.stage == "tombstone" and policy.is_set)


def set_policy(text):
    """Set directives of man sgl-compat, one a line or separated by `;`, over those of files and the environment. ValueError,
    and nothing is set, when one is not understood, or would soften what is denied. What the names' modules hand out and what
    operators do is changed at once; a function that somebody has taken from a module before stays his."""
    _set(text, "set_policy", sys._getframe(1))


def set_stage(name, stage):
    """The same for one name's stage: silent, warn, error or tombstone."""
    if name not in STAGES:
        raise ValueError(f"{name!r} is no deleted name of sgl_kernel")
    if stage not in STAGE_NAMES:
        raise ValueError(f"stage {stage!r} of {name} is none of {', '.join(STAGE_NAMES)}")
    _set(f"{name} = {stage}", "set_stage", sys._getframe(1))


def _set(text, function, frame):
    global _known, _is_set
    import ctypes

    try:
        loaded = library()
    except OSError as e:
        raise RuntimeError(f"{function}: the C library cannot be loaded: {e}") from None
    message = ctypes.create_string_buffer(1024)
    origin = f"{function}, {frame.f_code.co_filename}:{frame.f_lineno}"
    if loaded.sgl_compat_policy_set(text.encode(), origin.encode(errors="replace"), message, ctypes.c_size_t(1024)):
        raise ValueError(message.value.decode(errors="replace").replace("sgl_compat_policy_set", function, 1))
    _is_set, _known = True, None
    for notify in changed:
        notify()


def get_stage(name):
    """(stage, where it comes from)"""
    policy = of(name)
    return policy.stage, policy.origin
