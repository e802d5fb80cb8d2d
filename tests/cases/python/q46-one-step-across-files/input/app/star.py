from app.kernels import *
sk.dsv3_router_gemm(1)
