class A:
    """Uses dsv3_router_gemm.

    flashinfer.bmm_fp8
    sgl_kernel.bmm_fp8
    """
    x: int
    "attribute doc of dsv3_fused_a_gemm"
def f():
    r"""dsv3_router_gemm
    >>> import sgl_kernel
    >>> sgl_kernel.dsv3_router_gemm(1)
    """
