"""Statistics: what Python does with deleted names. The C library counts, and writes the files: sgl_kernel_compat.h."""
import functools, itertools, os, sys

from sgl_kernel_compat import _policy, _warn

ACCESS, OPERATOR = 3, 2  # sgl_compat_call
SAMPLES = 16  # calls of an operator whose caller is looked for, before only powers of two


@functools.lru_cache(None)
def _functions():
    """(count, again, uncounted) of the C library, which stays locked out of Python meanwhile; None where it cannot be loaded."""
    import ctypes

    try:
        library = ctypes.PyDLL(_policy.library()._name)
    except OSError as e:
        if is_on() and sys.stderr is not None:
            sys.stderr.write(f"sgl-kernel-compat: no statistics: {e}\n")
        return None
    count, again = library.sgl_compat_usage_python, library.sgl_compat_usage_again
    count.restype, again.restype, again.argtypes = ctypes.c_void_p, None, (ctypes.c_void_p,)
    count.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint)
    return count, again, library.sgl_compat_usage_uncounted


def is_on():
    return bool(os.environ.get("SGL_KERNEL_COMPAT_STATS"))


_counted: dict = {}  # (symbol, kind) -> are its uses seen? Of what the installed package serves itself.


def set_counted(symbol, kind, is_counted):
    """The installed package has the name. What is not seen is told in the statistics, since "not used" is not known then."""
    if _counted.get((symbol, kind)) != is_counted:
        _counted[symbol, kind] = is_counted
        if is_on():
            _tell(symbol, kind, is_counted)


def _tell(symbol, kind, is_counted):
    functions = _functions()
    if functions is not None:
        functions[2](symbol.encode(), kind, not is_counted)


_worker_end = None  # of this process
_told: set = set()  # places that a worker has written at once: who ends a pool may end it by a signal


def _write_in_workers():
    """A worker that multiprocessing has forked ends by os._exit, after its own list of what is to be done: it may be the first
    process to use a name, or to import this package. The list is emptied when the worker starts to work."""
    util = sys.modules.get("multiprocessing.util")
    if util is None:
        return

    def at_end(module):
        global _worker_end
        if _worker_end is not None:
            _worker_end.cancel()
        _worker_end = util.Finalize(None, _end_worker, exitpriority=-1000)

    util.register_after_fork(sys.modules[__name__], at_end)
    if sys.modules["multiprocessing.process"].parent_process() is not None:
        at_end(None)


def _end_worker():
    if is_on() and _policy.is_loaded():
        write_quietly()


def _bytes(text):
    return (text or "").encode(errors="replace")


def _count(symbol, kind, stage, frame):
    functions = _functions()
    if functions is None:
        return None
    module, file, line = (frame.f_globals.get("__name__"), frame.f_code.co_filename, frame.f_lineno or 0) if frame else ("", "", 0)
    place = functions[0](symbol.encode(), kind, stage and stage.encode(), _bytes(module), _bytes(file), line)
    if _worker_end is not None and is_on() and place not in _told:
        _told.add(place)
        try:
            write()
        except OSError:  # which is told at the end
            pass
    return place


def access(symbol, stage, frame):
    """frame has asked for the attribute. Returns what `again` takes for the next time at the same place: None, to count no
    more, for torch, which asks again in each guard, and for the import system, which asks before the statement does."""
    if frame is not None and frame is not _warn.statement(frame):
        return None
    traced = frame is not None and _warn.is_torch(frame)
    place = _count(symbol, ACCESS, stage, _warn.user_frame(frame))
    return None if traced else place


def again(place):
    if place is not None:
        _functions()[1](place)


_calls: dict = {}  # (symbol, stage) -> (place, how many there were)


def operator(symbol, stage):
    """A call of an operator that is implemented in Python. Its callers are sampled, as those of the C library's are."""
    if _functions() is None:
        return
    if (symbol, stage) not in _calls:
        _calls.setdefault((symbol, stage), (_count(symbol, OPERATOR, stage, None), itertools.count()))
        place, calls = _calls[symbol, stage]
    else:
        place, calls = _calls[symbol, stage]
        again(place)
    before = next(calls)
    if before < SAMPLES or before & (before - 1) == 0:
        sample(symbol, sys._getframe(1))


def sample(symbol, frame):
    """Where a call of an operator comes from."""
    user = _warn.user_frame(frame)
    if user is not None:
        _count(symbol, OPERATOR, None, user)


def write(folder=None):
    """Write the statistics now: into the folder, or into that of SGL_KERNEL_COMPAT_STATS. OSError when they cannot be."""
    import ctypes

    for (symbol, kind), is_counted in list(_counted.items()):
        _tell(symbol, kind, is_counted)
    message = ctypes.create_string_buffer(1024)
    path = os.fsencode(folder) if folder is not None else None
    if _policy.library().sgl_compat_usage_write(path, message, ctypes.c_size_t(1024)):
        raise OSError(message.value.decode(errors="replace").replace("sgl_compat_usage_write", "write_statistics", 1))


def write_quietly():
    try:
        write()
    except OSError as e:
        if sys.stderr is not None:
            sys.stderr.write(f"sgl-kernel-compat: {e}\n")


os.register_at_fork(after_in_child=_write_in_workers)
_write_in_workers()
