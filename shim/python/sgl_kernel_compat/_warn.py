"""Deprecation warnings at the user's line: once for each name and line, on one rank of a job."""
import os, sys, warnings

from sgl_kernel_compat._errors import SglKernelDeprecationWarning

# As torchrun, Slurm and the kinds of MPI tell it. Those of one node are told alone by some launchers.
RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK")
LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK")
_seen: set = set()  # (file, line, name)


def _rank():
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    ranks = [os.environ.get(name) for name in RANKS] + [_spawned()] + [os.environ.get(name) for name in LOCAL_RANKS]
    return next((rank for rank in ranks if rank), 0)


def _spawned():
    """The index of a process that torch.multiprocessing.spawn has started: all of them run one function, as ranks do."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    process = multiprocessing and multiprocessing.current_process()
    if getattr(getattr(process, "_target", None), "__module__", "") == "torch.multiprocessing.spawn":
        return str(process._args[1])
    return None


def silent():
    """Switched off, or one of the other ranks of a job."""
    return os.environ.get("SGL_KERNEL_COMPAT_WARN") == "off" or str(_rank()) != "0"


def is_torch(frame):
    file = getattr(sys.modules.get("torch"), "__file__", None)
    torch = os.path.join(os.path.dirname(file), "") if file else "<eval_with_key"  # some generated code says that it lies there
    code = frame.f_code.co_filename
    if code == "<string>" and frame.f_back is not None:
        return is_torch(frame.f_back)  # a guard's expression, which torch evaluates among the user's globals
    return (frame.f_globals.get("__name__") or "").partition(".")[0] == "torch" or code.startswith((torch, "<eval_with_key"))


def user_frame(frame):
    """The nearest frame that is not torch's, nor of code that torch has generated, nor of this package or the import
    system; None in a thread that has none."""
    ours = ("sgl_kernel_compat", "sgl_kernel_jit", "importlib")
    while frame is not None and (is_torch(frame) or (frame.f_globals.get("__name__") or "").partition(".")[0] in ours):
        frame = frame.f_back
    return frame


def statement(frame):
    """The frame of the statement that asks: `from package import name` asks out of the import system, too."""
    while frame is not None and (frame.f_globals.get("__name__") or "").partition(".")[0] == "importlib":
        frame = frame.f_back
    return frame


def _key(name, frame):
    return frame.f_code.co_filename, frame.f_lineno, name


def _warn(name, text, frame):
    """Raises the warning when a filter says so; then the same line warns again."""
    if _key(name, frame) in _seen or silent():
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__") or "<unknown>"  # a None is taken for the end of the process: no warning
    warnings.warn_explicit(text, SglKernelDeprecationWarning, frame.f_code.co_filename, frame.f_lineno, module, registry)
    _seen.add(_key(name, frame))


def to_stderr(name, text):
    """For code that has no line of Python: C++ in a thread of its own. Once for each name, as the C library does."""
    if name not in _seen and not silent() and sys.stderr is not None:
        sys.stderr.write(f"sgl-kernel-compat: warning: {text}\n")
    _seen.add(name)


def at_access(name, text, frame):
    """A module's attribute was asked for by frame."""
    # `from package import name` asks twice, first out of the import system: one line, one warning.
    if frame is not None and _key(name, frame) in _seen:
        return
    user = user_frame(frame)
    if user is None:
        to_stderr(name, text)
        return
    # torch asks while it traces, and again in each guard: there a filter may not raise, and once is enough.
    traced = is_torch(statement(frame))
    if traced and name in _seen:
        return
    try:
        _warn(name, text, user)
    except SglKernelDeprecationWarning:
        if not traced:
            raise
    if traced:
        _seen.add(name)


def from_operator(name, text):
    """For the hook of the C library: torch.ops was called. True when somebody was told, False to have it printed."""
    if silent():
        return True
    frame = user_frame(sys._getframe(1))
    if frame is None:
        return False
    _warn(name, text, frame)
    return True
