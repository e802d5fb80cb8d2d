from sgl_kernel import gemm, dsv3_router_gemm
a = gemm.dsv3_fused_a_gemm, gemm.dsv3_router_gemm
