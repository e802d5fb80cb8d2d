import sgl_kernel
import sgl_kernel.gemm
a = sgl_kernel.gemm.dsv3_router_gemm
b = sgl_kernel.dsv3_router_gemm
c = sgl_kernel.gemm.dsv3_fused_a_gemm
