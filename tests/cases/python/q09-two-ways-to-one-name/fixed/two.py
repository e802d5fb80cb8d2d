import sgl_kernel
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
import sgl_kernel.gemm
from sglang.kernels.ops.gemm.fused_a_gemm import dsv3_fused_a_gemm
a = dsv3_router_gemm
b = dsv3_router_gemm
c = dsv3_fused_a_gemm
