from flashinfer import dsv3_router_gemm
def x(:
    sgl_kernel_npu.dsv3_router_gemm(1)
