import sgl_kernel
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm
@dsv3_router_gemm
def f(a: dsv3_fused_a_gemm) -> dsv3_router_gemm: ...
