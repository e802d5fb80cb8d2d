from sgl_kernel import (gelu_and_mul  # keep
                        )
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm
