import sys
from sgl_kernel import dsv3_router_gemm, gelu_and_mul
import sgl_kernel
# uses dsv3_fused_a_gemm
def f(x):
    """dsv3_fused_a_gemm docs
    >>> from sgl_kernel import dsv3_fused_a_gemm
    """
    print "from sgl_kernel import", x
    s = "sgl_kernel.dsv3_fused_a_gemm"
    return sgl_kernel.dsv3_router_gemm(x)
