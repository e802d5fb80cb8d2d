import sgl_kernel
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm
x = (dsv3_router_gemm(1))
y = dsv3_fused_a_gemm(2)
z = (sgl_kernel  # c
     .dsv3_router_gemm)
w = 1 if x else dsv3_router_gemm
