from sgl_kernel import dsv3_router_gemm, silu_and_mul
from sgl_kernel import dsv3_fused_a_gemm
