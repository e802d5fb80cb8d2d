from two.steps import sk
sk.dsv3_router_gemm(1)
