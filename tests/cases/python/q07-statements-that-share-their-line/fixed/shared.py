import sgl_kernel; from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm; x = dsv3_router_gemm; y = 2
if x: from sgl_kernel import (
   gelu_and_mul); from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm  # a
if x: from sgl_kernel import (dsv3_fused_a_gemm, # a
   gelu_and_mul); z = 1
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm; from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm; y = 1  # c
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm;
class A: from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm; from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm
