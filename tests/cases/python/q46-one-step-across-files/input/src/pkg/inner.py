from . import root
from pkg import root as r2
root.dsv3_router_gemm(1)
r2.dsv3_fused_a_gemm(1)
