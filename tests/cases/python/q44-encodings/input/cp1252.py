# -*- coding: cp1252 -*-
from sgl_kernel import (
    gelu_and_mul,
    dsv3_router_gemm as café,  # “q”
)
