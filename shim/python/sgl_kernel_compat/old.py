"""The deleted names of sgl_kernel without sgl_kernel: `from sgl_kernel_compat.old import dsv3_router_gemm`."""
import sys

from sgl_kernel_compat._imports import provide

provide(sys.modules[__name__], "sgl_kernel")
