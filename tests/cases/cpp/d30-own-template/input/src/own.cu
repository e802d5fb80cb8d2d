#include <cuda_runtime.h>

template <typename T, int kHdIn, int kHdOut, int kTileN, int kTileK = 256>
void invokeFusedAGemm(T *output, T const *mat_a, T const *mat_b, int num_tokens, int stride, cudaStream_t const stream, bool pdl) {
  launch<kHdIn, kHdOut, kTileN, kTileK>(output, mat_a, mat_b, num_tokens, stride, stream, pdl);
}

template <typename T> void choose(T *out, T const *a, T const *b, int n, cudaStream_t s) {
  if (n <= 8)
    invokeFusedAGemm<T, 7168, 2112, 8>(out, a, b, n, 7168, s, true);
  else
    invokeFusedAGemm<T, 7168, 2112, 16>(out, a, b, n, 7168, s, true);
}
