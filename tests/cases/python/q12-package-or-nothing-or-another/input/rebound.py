import sgl_kernel
sgl_kernel.dsv3_router_gemm(1)
sgl_kernel = fake()
sgl_kernel.dsv3_fused_a_gemm(1)
