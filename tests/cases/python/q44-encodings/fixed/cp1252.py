# -*- coding: cp1252 -*-
from sgl_kernel import (
    gelu_and_mul,
)
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm as café  # “q”
