from sgl_kernel import dsv3_router_gemm
from sglang.jit_kernel.dsv3_router_gemm import dsv3_router_gemm as j
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm as k
