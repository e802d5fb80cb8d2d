"""The two C libraries of this wheel, loaded when they are first needed."""
import ctypes, functools, os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
MESSAGE = 1024  # bytes


def _machine(path):
    """The kind of processor that an ELF file is made for; b"" when it says none."""
    try:
        with open(path, "rb") as file:
            header = file.read(20)
            return header[18:] if header[:4] == b"\x7fELF" else b""
    except OSError:
        return b""


def _load(name):
    path = os.path.join(FOLDER, name)
    try:
        # RTLD_LOCAL: the old C++ symbols must not get between an old wheel and its own functions.
        return ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as e:
        why = str(e).removeprefix(f"{path}: ")
        if _machine(path) not in (b"", _machine("/proc/self/exe")):  # of which the loader says that there is no such file
            why = "made for another kind of processor"
        raise ImportError(f"sgl_kernel_jit: cannot load {path}: {why}", name="sgl_kernel_jit", path=path) from None


@functools.lru_cache(None)
def jit():
    return _load("libsgl_kernel_jit.so.0")


@functools.lru_cache(None)
def compat():
    jit()  # by its path, before the other library asks for it by name
    library = _load("libsgl_kernel_compat.so.0")
    library.sgl_compat_op_name.restype = ctypes.c_char_p
    library.sgl_compat_op_name.argtypes = (ctypes.c_size_t,)
    return library


def message_of(function, *arguments):
    """The error message of a C function that ends in (char *message, size_t message_size); "" when it succeeded."""
    message = ctypes.create_string_buffer(MESSAGE)
    status = function(*arguments, message, ctypes.c_size_t(MESSAGE))
    return (message.value.decode(errors="replace") or f"status {status}") if status else ""
