// output[m, n] = sum over k of activations[m, k] * weights[n, k], all packed row-major, output bf16: tensor_gemm.cuh,
// a tile of 16 columns for each block.
#include <tensor_gemm.cuh>

#if DEPTH_16
TENSOR_ENTRY(fused_a_16, 16, DEPTH_16)
#endif
#if DEPTH_32
TENSOR_ENTRY(fused_a_32, 32, DEPTH_32)
#endif
