import sglang.kernels.ops.gemm.dsv3_router_gemm as m
from sgl_kernel import dsv3_router_gemm, dsv3_fused_a_gemm
