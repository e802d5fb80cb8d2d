from sgl_kernel import (  # open
    dsv3_router_gemm,  # a
    gelu_and_mul,  # keep
    # above b

    # directly
    dsv3_fused_a_gemm
)  # close
