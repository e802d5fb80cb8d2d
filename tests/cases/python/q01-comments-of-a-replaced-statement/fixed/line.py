from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm  # note
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm
