if (sgl_kernel := load()):
    sgl_kernel.dsv3_router_gemm(1)
