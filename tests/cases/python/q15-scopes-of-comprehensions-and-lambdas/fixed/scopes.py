import sgl_kernel
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
a = [dsv3_router_gemm(x) for x in y]
b = [sgl_kernel.dsv3_router_gemm for sgl_kernel in y]
c = [x for x in dsv3_router_gemm(y)]
d = lambda sgl_kernel: sgl_kernel.dsv3_router_gemm
e = lambda x: dsv3_router_gemm(x)
if (w := load()): pass
