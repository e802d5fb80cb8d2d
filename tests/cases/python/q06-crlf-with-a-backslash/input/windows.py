import torch
from sgl_kernel import dsv3_router_gemm, gelu_and_mul  # x
from sgl_kernel import \
    dsv3_fused_a_gemm
x = 1
