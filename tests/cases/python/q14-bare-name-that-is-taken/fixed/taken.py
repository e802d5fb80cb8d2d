import sgl_kernel
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
def f(x, dsv3_router_gemm=None):
    return sgl_kernel.dsv3_router_gemm(x)
def g(x): return dsv3_router_gemm(x)
def h(x):
    dsv3_fused_a_gemm = sgl_kernel.dsv3_fused_a_gemm
    return dsv3_fused_a_gemm(x)
