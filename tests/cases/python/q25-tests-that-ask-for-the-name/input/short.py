import sgl_kernel as sk
x = sk.dsv3_router_gemm if hasattr(sk, "dsv3_router_gemm") else None
y = hasattr(sk, "dsv3_fused_a_gemm") and sk.dsv3_fused_a_gemm
