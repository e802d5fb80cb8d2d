from app.kernels import sk, gemm as g, ns, alias, guarded
from .kernels import sgl_kernel as k2
import app.kernels as K
sk.dsv3_router_gemm(1)
g.dsv3_fused_a_gemm(1)
ns.dsv3_router_gemm(1)
alias.dsv3_router_gemm(2)
guarded.dsv3_router_gemm(2)
k2.dsv3_router_gemm(3)
K.sk.dsv3_router_gemm(4)
K.dsv3_router_gemm(5)
from app.kernels import dsv3_router_gemm as own
