import sgl_kernel as sk
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
if hasattr(sk, "merge_state_v2"):
    x = dsv3_router_gemm
elif hasattr(sk, "dsv3_fused_a_gemm"):
    x = sk.dsv3_fused_a_gemm
else:
    y = sk.dsv3_fused_a_gemm
    z = dsv3_router_gemm
