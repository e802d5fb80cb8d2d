"""The deleted names of sgl_kernel without sgl_kernel: `from sgl_kernel_compat.old import dsv3_router_gemm`."""
import sys

from sgl_kernel_compat import _answers, _policy
from sgl_kernel_compat._imports import MODULES, provide


def __dir__():
    """What may be served here, and no stage forbids: `import *` takes these."""
    return sorted(name for name, id in MODULES["sgl_kernel"].items() if not _policy.is_forbidden(id) and _answers.may_have(id))


def __getattr__(name):
    if name == "__all__":
        return __dir__()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


provide(sys.modules[__name__], "sgl_kernel")
