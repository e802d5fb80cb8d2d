from sglang.jit_kernel import dsv3_router_gemm, fused_a_gemm as m
dsv3_router_gemm.dsv3_router_gemm(1)
m.dsv3_fused_a_gemm(2)
import sglang.jit_kernel.dsv3_router_gemm as q
q.dsv3_router_gemm(3)
import sglang.jit_kernel.fused_a_gemm
sglang.jit_kernel.fused_a_gemm.dsv3_fused_a_gemm(4)
from sglang import jit_kernel
jit_kernel.dsv3_router_gemm.dsv3_router_gemm(1)
