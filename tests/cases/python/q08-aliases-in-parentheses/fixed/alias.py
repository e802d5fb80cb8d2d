from sgl_kernel import (
    gelu_and_mul as b,
)
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm as a
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm as dsv3_fused_a_gemm
