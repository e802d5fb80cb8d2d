from sgl_kernel import (
                        gelu_and_mul)
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm
