from app.kernels import sk, gemm as g, ns, alias, guarded
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm
from .kernels import sgl_kernel as k2
import app.kernels as K
dsv3_router_gemm(1)
dsv3_fused_a_gemm(1)
ns.dsv3_router_gemm(1)
alias.dsv3_router_gemm(2)
guarded.dsv3_router_gemm(2)
dsv3_router_gemm(3)
K.sk.dsv3_router_gemm(4)
K.dsv3_router_gemm(5)
from app.kernels import dsv3_router_gemm as own
