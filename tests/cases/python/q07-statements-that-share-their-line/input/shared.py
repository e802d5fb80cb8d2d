import sgl_kernel; x = sgl_kernel.dsv3_router_gemm; y = 2
if x: from sgl_kernel import (dsv3_router_gemm, # a
   gelu_and_mul)
if x: from sgl_kernel import (dsv3_fused_a_gemm, # a
   gelu_and_mul); z = 1
from sgl_kernel import dsv3_router_gemm, dsv3_fused_a_gemm; y = 1  # c
from sgl_kernel import dsv3_router_gemm;
class A: from sgl_kernel import dsv3_router_gemm, dsv3_fused_a_gemm
