from sgl_kernel import (gelu_and_mul,  # keep
                        dsv3_fused_a_gemm)
