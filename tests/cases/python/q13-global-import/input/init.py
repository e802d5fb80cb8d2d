def init():
    global sgl_kernel
    import sgl_kernel
def f(x): return sgl_kernel.dsv3_router_gemm(x)
