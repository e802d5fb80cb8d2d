import sgl_kernel
a = [sgl_kernel.dsv3_router_gemm(x) for x in y]
b = [sgl_kernel.dsv3_router_gemm for sgl_kernel in y]
c = [x for x in sgl_kernel.dsv3_router_gemm(y)]
d = lambda sgl_kernel: sgl_kernel.dsv3_router_gemm
e = lambda x: sgl_kernel.dsv3_router_gemm(x)
if (w := load()): pass
