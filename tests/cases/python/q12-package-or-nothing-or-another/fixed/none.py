if cuda():
    import sgl_kernel
    from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
else:
    sgl_kernel = None
def f(x): return dsv3_router_gemm(x)
