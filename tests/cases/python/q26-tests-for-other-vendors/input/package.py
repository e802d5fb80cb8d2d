if is_musa():
    import sgl_kernel
def f(): return sgl_kernel.dsv3_router_gemm(1)
