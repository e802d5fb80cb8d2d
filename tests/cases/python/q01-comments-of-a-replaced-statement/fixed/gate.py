from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm  # open  # a  # close
# above b
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm
# loose
x = 1
