from lazy import kernels
import lazy

kernels().dsv3_router_gemm(1)
lazy.kernels().dsv3_fused_a_gemm(1)
