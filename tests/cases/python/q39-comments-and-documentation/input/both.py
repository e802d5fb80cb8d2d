# dsv3_router_gemm and dsv3_fused_a_gemm and sgl_kernel.dsv3_router_gemm
