from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
