import sgl_kernel, pytest
@pytest.mark.skipif(not hasattr(sgl_kernel, "dsv3_router_gemm"), reason="needs dsv3_router_gemm")
def test():
    sgl_kernel.dsv3_router_gemm(1)
def test2():
    sgl_kernel.dsv3_router_gemm(1)
