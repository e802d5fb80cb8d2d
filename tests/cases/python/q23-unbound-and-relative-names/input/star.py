from sgl_kernel import *
from sgl_kernel.gemm import *
def f(dsv3_router_gemm): return dsv3_router_gemm(1)
x = dsv3_router_gemm(1), dsv3_fused_a_gemm
y = a.dsv3_router_gemm, f(dsv3_router_gemm=1)
