import sgl_kernel
from sgl_kernel import dsv3_router_gemm, gelu_and_mul
a = sgl_kernel.dsv3_router_gemm
dsv3_router_gemm(1)
