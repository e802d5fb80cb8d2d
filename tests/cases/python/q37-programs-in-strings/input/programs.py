a = "from sgl_kernel import dsv3_router_gemm"
b = "import sgl_kernel; sgl_kernel.dsv3_router_gemm(1)"
c = """
import torch
from sgl_kernel import (
    merge_state_v2,
    dsv3_router_gemm,
)
dsv3_router_gemm(1)
"""
d = "python -c 'from sgl_kernel import dsv3_router_gemm'"
e = timeit("sgl_kernel.dsv3_router_gemm(x, w)", setup="import sgl_kernel")
f = "from sgl_kernel import merge_state_v2\nfrom sgl_kernel import dsv3_router_gemm\n"
g = f"from sgl_kernel import dsv3_router_gemm; print({x})"
h = "import sgl_kernel as sk\nsk.dsv3_router_gemm(1)"
i = "from flashinfer import dsv3_router_gemm"
j = "torch.ops.sgl_kernel.dsv3_router_gemm(a, b, c)"
k = "import torch; torch.ops.sgl_kernel.dsv3_router_gemm(a)"
l = "x = sgl_kernel.dsv3_router_gemm"
