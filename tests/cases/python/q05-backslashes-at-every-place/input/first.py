from sgl_kernel import dsv3_router_gemm, \
    gelu_and_mul, \
    dsv3_fused_a_gemm, \
    merge_state_v2
