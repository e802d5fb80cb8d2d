if x:
	from sgl_kernel import dsv3_router_gemm
        y = 1
