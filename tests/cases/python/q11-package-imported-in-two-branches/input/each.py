def f(a, x):
    if a:
        import sgl_kernel
        return sgl_kernel.dsv3_router_gemm(x)
    else:
        import sgl_kernel as s
        return s.dsv3_router_gemm(x)
