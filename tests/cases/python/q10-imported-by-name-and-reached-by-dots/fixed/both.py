import sgl_kernel
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
from sgl_kernel import gelu_and_mul
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
a = dsv3_router_gemm
dsv3_router_gemm(1)
