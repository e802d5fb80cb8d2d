x = 1
  from sgl_kernel import dsv3_router_gemm
