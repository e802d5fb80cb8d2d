from sgl_kernel import dsv3_router_gemm
x =
  1
