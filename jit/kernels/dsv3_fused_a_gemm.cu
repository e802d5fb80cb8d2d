// output[m, n] = sum over k of activations[m, k] * weights[n, k], all packed row-major, output bf16: tensor_gemm.cuh,
// in tiles of 16 columns for up to 16 tokens, and of 32 for more, so that fewer blocks read them.
#include <tensor_gemm.cuh>

#if DEPTH_16
TENSOR_ENTRY(fused_a_16, TILE_16, 16, DEPTH_16)
#endif
#if DEPTH_32
TENSOR_ENTRY(fused_a_32, TILE_32, 32, DEPTH_32)
#endif
