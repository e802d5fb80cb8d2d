from sgl_kernel import silu_and_mul
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
from sgl_kernel import dsv3_fused_a_gemm
