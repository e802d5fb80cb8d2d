import sgl_kernel as sk
if hasattr(sk, "merge_state_v2"):
    x = sk.dsv3_router_gemm
elif hasattr(sk, "dsv3_fused_a_gemm"):
    x = sk.dsv3_fused_a_gemm
else:
    y = sk.dsv3_fused_a_gemm
    z = sk.dsv3_router_gemm
