from sgl_kernel import (  # open
    dsv3_router_gemm,  # a
    # above b
    dsv3_fused_a_gemm,
    # loose
)  # close
x = 1
