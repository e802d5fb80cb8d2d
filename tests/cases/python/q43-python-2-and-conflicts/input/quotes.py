from sgl_kernel import dsv3_router_gemm
x = """ never closed
from sgl_kernel import dsv3_fused_a_gemm
