// Two launches: scale = max(scale, the greatest size of an element / 448), which a caller that gives the scale leaves
// out, and output = float8_e4m3fn(input * (1 / scale)). A NaN does not count for the scale, and becomes 448.
//
// A thread takes 16 neighbours; the last ones of a tensor, or all of one that is not 16-byte aligned, one by one. The
// second launch begins where the first one ended: that part of the input is still in the second-level cache.
constexpr int THREADS = 512;
#include <elements.cuh>

template <typename T> INLINE void load_sixteen(const typename T::bits *from, float (&to)[16]) {
  constexpr int EACH = 16 / sizeof(typename T::bits);
  union piece {
    vec16 v;
    typename T::bits b[EACH];
  } pieces[16 / EACH];
#pragma unroll
  for (int i = 0; i < 16 / EACH; i++)
    pieces[i].v = load16(from + i * EACH);
#pragma unroll
  for (int i = 0; i < 16; i++)
    to[i] = T::widen(pieces[i / EACH].b[i % EACH]);
}

INLINE bool is_aligned(const per_tensor_quant &p) {
  return ((reinterpret_cast<unsigned long long>(p.input) | reinterpret_cast<unsigned long long>(p.output)) & 15) == 0;
}

template <typename T> INLINE void absmax(const per_tensor_quant &p) {
  const typename T::bits *input = static_cast<const typename T::bits *>(p.input);
  const long long own = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x,
                  all = static_cast<long long>(gridDim.x) * THREADS, pieces = is_aligned(p) ? p.count / 16 : 0;
  float most = 0;
  for (long long i = own; i < pieces; i += all) {
    float value[16];
    load_sixteen<T>(input + i * 16, value);
#pragma unroll
    for (int j = 0; j < 16; j++)
      most = fmaxf(most, fabsf(value[j]));
  }
  for (long long i = pieces * 16 + own; i < p.count; i += all)
    most = fmaxf(most, fabsf(T::widen(input[i])));
  for (int mask = 16; mask > 0; mask /= 2)
    most = fmaxf(most, from_lane_xor(most, mask));
  float *shared = reinterpret_cast<float *>(block_shared());
  if (threadIdx.x % 32 == 0)
    shared[threadIdx.x / 32] = most;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < THREADS / 32; i++)
      most = fmaxf(most, shared[i]);
    atomic_max(p.scale, most / 448.0f);
  }
}

INLINE float scaled(float value, float inverse) {
  return fmaxf(fminf(value * inverse, 448.0f), -448.0f);
}

template <typename T> INLINE void quant(const per_tensor_quant &p) {
  const typename T::bits *input = static_cast<const typename T::bits *>(p.input);
  unsigned char *output = static_cast<unsigned char *>(p.output);
  const long long own = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x,
                  all = static_cast<long long>(gridDim.x) * THREADS, pieces = is_aligned(p) ? p.count / 16 : 0;
  const float inverse = 1.0f / *p.scale;
  for (long long i = pieces * 16 + own; i < p.count; i += all)
    output[i] = static_cast<unsigned char>(e4m3_pair(scaled(T::widen(input[i]), inverse), 0));
  for (long long i = pieces - 1 - own; i >= 0; i -= all) {
    float value[16];
    load_sixteen<T>(input + i * 16, value);
    vec16 v;
#pragma unroll
    for (int j = 0; j < 4; j++)
      v.w[j] = e4m3_pair(scaled(value[4 * j], inverse), scaled(value[4 * j + 1], inverse)) |
               e4m3_pair(scaled(value[4 * j + 2], inverse), scaled(value[4 * j + 3], inverse)) << 16;
    store16(output + i * 16, v);
  }
}

KERNEL(absmax_fp32, per_tensor_quant) {
  absmax<fp32>(p);
}
KERNEL(absmax_bf16, per_tensor_quant) {
  absmax<bf16>(p);
}
KERNEL(absmax_fp16, per_tensor_quant) {
  absmax<fp16>(p);
}
KERNEL(quant_fp32, per_tensor_quant) {
  quant<fp32>(p);
}
KERNEL(quant_bf16, per_tensor_quant) {
  quant<bf16>(p);
}
KERNEL(quant_fp16, per_tensor_quant) {
  quant<fp16>(p);
}
