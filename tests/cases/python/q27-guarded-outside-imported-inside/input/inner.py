try:
    import sgl_kernel
except ImportError: sgl_kernel = None
def f():
    import sgl_kernel
    return sgl_kernel.dsv3_router_gemm
from sgl_kernel import dsv3_fused_a_gemm
