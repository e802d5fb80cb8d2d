import sgl_kernel
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
def f():
    if is_musa(): return sgl_kernel.dsv3_router_gemm(1)
    x = dsv3_fused_a_gemm(1) if not is_hip() else sgl_kernel.dsv3_fused_a_gemm(2)
    return dsv3_router_gemm(1)
