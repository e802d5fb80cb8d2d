import torch
import sgl_kernel
from sgl_kernel import dsv3_router_gemm  # line 3
f = sgl_kernel.dsv3_router_gemm  # line 4
a, w = torch.zeros(1, 7168, dtype=torch.bfloat16), torch.zeros(256, 7168, dtype=torch.bfloat16)
for _ in range(2):
    torch.ops.sgl_kernel.dsv3_router_gemm(f(a, w), a, w)  # line 7
