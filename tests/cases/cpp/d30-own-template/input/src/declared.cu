template <typename T, int kHdIn, int kHdOut, int kTileN>
void invokeFusedAGemm(T *output, T const *mat_a, T const *mat_b, int num_tokens, cudaStream_t const stream);
