import sgl_kernel
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm
match f:
    case sgl_kernel.dsv3_router_gemm: pass
    case _: x = dsv3_fused_a_gemm
