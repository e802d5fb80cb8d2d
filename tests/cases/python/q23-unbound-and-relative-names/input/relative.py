from .sgl_kernel import dsv3_router_gemm
from . import sgl_kernel
sgl_kernel.dsv3_router_gemm(1)
