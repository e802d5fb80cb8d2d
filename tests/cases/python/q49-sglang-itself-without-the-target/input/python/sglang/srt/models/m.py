from sgl_kernel import dsv3_router_gemm, silu_and_mul
from sgl_kernel import hadamard_transform as aot
from sglang.jit_kernel.awq_marlin_repack import awq_marlin_repack
from sglang.jit_kernel.hadamard import hadamard_transform
