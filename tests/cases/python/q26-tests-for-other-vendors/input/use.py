import sgl_kernel
def f():
    if is_musa(): return sgl_kernel.dsv3_router_gemm(1)
    x = sgl_kernel.dsv3_fused_a_gemm(1) if not is_hip() else sgl_kernel.dsv3_fused_a_gemm(2)
    return sgl_kernel.dsv3_router_gemm(1)
