import sgl_kernel as sk
# sk.dsv3_router_gemm other.dsv3_fused_a_gemm
def bmm_fp8(): 
    """bmm_fp8 of this project"""
