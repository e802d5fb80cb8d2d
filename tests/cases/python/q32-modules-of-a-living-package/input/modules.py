from sglang.jit_kernel import dsv3_router_gemm
dsv3_router_gemm.dsv3_router_gemm(1)
from sglang.jit_kernel.fused_a_gemm import dsv3_fused_a_gemm
