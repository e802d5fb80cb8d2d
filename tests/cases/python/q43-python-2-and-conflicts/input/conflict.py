from sgl_kernel import (
    dsv3_router_gemm as r,  # c
    gelu_and_mul,
    dsv3_fused_a_gemm
)
<<<<<<< HEAD
from sgl_kernel.gemm import dsv3_router_gemm
=======
>>>>>>> other
