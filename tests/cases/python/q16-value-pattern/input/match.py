import sgl_kernel
match f:
    case sgl_kernel.dsv3_router_gemm: pass
    case _: x = sgl_kernel.dsv3_fused_a_gemm
