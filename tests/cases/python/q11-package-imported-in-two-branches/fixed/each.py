def f(a, x):
    if a:
        import sgl_kernel
        from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
        return dsv3_router_gemm(x)
    else:
        import sgl_kernel as s
        from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
        return dsv3_router_gemm(x)
