def f(): return sgl_kernel.dsv3_router_gemm(1)
