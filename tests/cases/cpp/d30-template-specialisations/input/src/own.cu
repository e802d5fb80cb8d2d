template <typename T, int A, int B, int C>
void invokeFusedAGemm(T*, T const*, T const*, int, cudaStream_t const) {}
template <>
void invokeFusedAGemm<int, 1, 2, 3>(int*, const int*, const int*, int, cudaStream_t) {}
void g(int* o, cudaStream_t s) { invokeFusedAGemm<int, 1, 2, 3>(o, o, o, 1, s); }
