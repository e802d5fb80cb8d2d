import sgl_kernel
x = (sgl_kernel
     .dsv3_router_gemm(1))
y = sgl_kernel. \
    dsv3_fused_a_gemm(2)
z = (sgl_kernel  # c
     .dsv3_router_gemm)
w = 1 if x else(sgl_kernel).dsv3_router_gemm
