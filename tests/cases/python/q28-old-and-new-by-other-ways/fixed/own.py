from sgl_kernel_jit import dsv3_router_gemm as new
from sgl_kernel import dsv3_router_gemm
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm
