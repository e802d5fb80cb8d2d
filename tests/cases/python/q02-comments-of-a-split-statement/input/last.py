from sgl_kernel import (
    gelu_and_mul,  # act
    dsv3_router_gemm  # r
)
