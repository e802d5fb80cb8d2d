import sgl_kernel, pytest
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
@pytest.mark.skipif(not hasattr(sgl_kernel, "dsv3_router_gemm"), reason="needs dsv3_router_gemm")
def test():
    sgl_kernel.dsv3_router_gemm(1)
def test2():
    dsv3_router_gemm(1)
