from sglang.kernels.ops.gemm import dsv3_router_gemm as new
from sgl_kernel import dsv3_router_gemm, dsv3_fused_a_gemm
