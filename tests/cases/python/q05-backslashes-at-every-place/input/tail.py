from sgl_kernel import gelu_and_mul, \
    dsv3_router_gemm, \
    dsv3_fused_a_gemm
y = 2
