import sgl_kernel
print(f"{sgl_kernel.dsv3_router_gemm(x)!r:>{sgl_kernel.dsv3_fused_a_gemm}}")
