"""sgl_kernel_compat: the names that sgl_kernel deleted, kept working on an installed sgl_kernel.

Importing this (or torch, through the entry point torch.backends) is all: from then on

    from sgl_kernel import X, from sgl_kernel.gemm import X, sgl_kernel.X, torch.ops.sgl_kernel.X

find the deleted names. A name that the installed sgl_kernel has is left alone. Environment:

    SGL_KERNEL_COMPAT       1 (default) | 0: do nothing | standalone: provide the module sgl_kernel too, where none is
                            installed (from the import of torch or of this package on)
    SGL_KERNEL_COMPAT_WARN  off | once: no warnings, or one for each name and call site (default)
    SGL_KERNEL_COMPAT_POLICY
                            directives of man sgl-compat, separated by ; as in NAME=silent | warn | error | tombstone: the
                            stages of names, also of one that the installed sgl_kernel has; set_stage and set_policy do
                            the same, and there are files. silent also leaves an operator that nothing here serves to
                            whoever defines it

    SGL_KERNEL_COMPAT_STATS a folder: who uses which deleted name is written there, for sgl-compat report;
                            write_statistics does it at once
    SGL_KERNEL_COMPAT_LOG   off (default) | calls: a line for each call of these names, with its tensors, into a file of
                            SGL_KERNEL_COMPAT_LOG_DIR (default: the folder of the statistics, TMPDIR, /tmp)

sgl_kernel_compat.old has the same functions by import, without any sgl_kernel."""
import os, sys

from sgl_kernel_compat._errors import (
    SglKernelAttributeError,
    SglKernelDeprecationWarning,
    SglKernelImportError,
    SglKernelModuleNotFoundError,
)
from sgl_kernel_compat._imports import install
from sgl_kernel_compat._policy import get_stage, set_policy, set_stage
from sgl_kernel_compat._usage import write as write_statistics
from sgl_kernel_compat._version import __version__

__all__ = [
    "SglKernelAttributeError",
    "SglKernelDeprecationWarning",
    "SglKernelImportError",
    "SglKernelModuleNotFoundError",
    "get_stage",
    "install",
    "set_policy",
    "set_stage",
    "write_statistics",
]

_how = os.environ.get("SGL_KERNEL_COMPAT", "")
if _how not in ("", "0", "1", "standalone") and sys.stderr is not None:
    sys.stderr.write(f"sgl-kernel-compat: SGL_KERNEL_COMPAT={_how} is none of 0, 1, standalone; taking 1\n")
if _how != "0":
    install(standalone=_how == "standalone")
