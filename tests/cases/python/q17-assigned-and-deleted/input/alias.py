import sgl_kernel
k = sgl_kernel
k.dsv3_router_gemm(1)
