from sgl_kernel import (
    dsv3_router_gemm as a, gelu_and_mul as b,
    dsv3_fused_a_gemm as dsv3_fused_a_gemm,
)
