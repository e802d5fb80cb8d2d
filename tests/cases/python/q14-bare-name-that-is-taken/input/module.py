import sgl_kernel
dsv3_router_gemm = sgl_kernel.dsv3_router_gemm
