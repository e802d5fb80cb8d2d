try:
    import sgl_kernel
except ImportError: sgl_kernel = None
def f():
    import sgl_kernel
    from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
    return dsv3_router_gemm
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm
