from sgl_kernel import (
    gelu_and_mul, dsv3_router_gemm,  # mixed
    merge_state_v2,
)
