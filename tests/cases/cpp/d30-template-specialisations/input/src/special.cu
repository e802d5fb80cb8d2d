template <>
void invokeFusedAGemm<int, 1, 2, 3>(int*, const int*, const int*, int, cudaStream_t) {}
extern template void invokeFusedAGemm<int, 1, 2, 4>(int*, const int*, const int*, int, cudaStream_t);
template void invokeRouterGemmBf16Output<float, 1, 256, 7168>(float*, const float*, const float*, cudaStream_t);
void f(int* o, cudaStream_t s) {
  invokeFusedAGemm<int, 1, 2, 3>(o, o, o, 1, s);
  auto p = &invokeFusedAGemm<int, 1, 2, 5>;
}
