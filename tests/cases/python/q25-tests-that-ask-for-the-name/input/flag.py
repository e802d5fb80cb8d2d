import sgl_kernel as sk
HAS = hasattr(sk, "dsv3_router_gemm")
def f(x):
    if HAS:
        return sk.dsv3_router_gemm(x)
    if not hasattr(sk, "dsv3_fused_a_gemm"):
        return None
    return sk.dsv3_fused_a_gemm(x)
