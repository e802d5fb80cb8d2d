from sgl_kernel import dsv3_router_gemm,
from other import dsv3_fused_a_gemm
