import sgl_kernel
def f(x, dsv3_router_gemm=None):
    return sgl_kernel.dsv3_router_gemm(x)
def g(x): return sgl_kernel.dsv3_router_gemm(x)
def h(x):
    dsv3_fused_a_gemm = sgl_kernel.dsv3_fused_a_gemm
    return dsv3_fused_a_gemm(x)
