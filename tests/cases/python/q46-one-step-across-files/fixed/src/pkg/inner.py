from . import root
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
from pkg import root as r2
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm
dsv3_router_gemm(1)
dsv3_fused_a_gemm(1)
