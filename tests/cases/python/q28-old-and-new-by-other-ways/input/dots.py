from sglang.kernels.ops import gemm
gemm.dsv3_router_gemm.dsv3_router_gemm(1)
from sgl_kernel import dsv3_router_gemm, dsv3_fused_a_gemm
