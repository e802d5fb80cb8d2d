if a:
    import sgl_kernel
else:
    import sgl_kernel
def f(x): return sgl_kernel.dsv3_router_gemm(x)
