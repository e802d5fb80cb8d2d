# see jit_kernel/moe_fused_gate.py for another way
# needs fast_hadamard_transform: pip install fast-hadamard-transform
# hadamard_transform, dsv3_router_gemm.
SOURCE = """
reduce_sum</*init=*/true, /*warp_reduce=*/false>(scores, row_sum);
f(/*dsv3_router_gemm=*/ 1);
"""
