# a from sgl_kernel import dsv3_router_gemm
# bc
x = " "
from sgl_kernel import dsv3_router_gemm #  d
from sgl_kernel import dsv3_fused_a_gemm, gelu_and_mul
