with patch.dict("sys.modules", {"sgl_kernel": NS(dsv3_router_gemm=1)}):
    from sgl_kernel import dsv3_router_gemm
