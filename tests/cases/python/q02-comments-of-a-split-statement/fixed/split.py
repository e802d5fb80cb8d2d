from sgl_kernel import (  # open
    gelu_and_mul  # keep
    # above b

)  # close
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm  # a
# directly
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm
