// k_out[loc[t] * mult + offset] = float8_e4m3fn(k[t] / k_scale), and the same of v. As the ahead-of-time kernel, it
// divides in the type of k: by a reciprocal that is rounded to it, and the product is rounded to it too.
//
// A thread takes 16 neighbours of k and of v, which a row has a whole number of, or single ones where it has not. What
// is beyond the slots is not written.
constexpr int THREADS = 256;
#include <elements.cuh>

template <typename T> INLINE float reciprocal(const float *scale) {
  return T::widen(T::narrow(1.0f / T::widen(T::narrow(*scale))));
}

template <typename T> INLINE float divided(typename T::bits value, float inverse) {
  return T::widen(T::narrow(T::widen(value) * inverse));
}

template <typename T> INLINE unsigned two(unsigned word, float inverse) {
  return e4m3_pair(divided<T>(static_cast<unsigned short>(word), inverse),
                   divided<T>(static_cast<unsigned short>(word >> 16), inverse));
}

template <typename T> INLINE vec16 sixteen(const vec16 *from, float inverse) {
  const vec16 a = load16(from), b = load16(from + 1);
  vec16 v;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    v.w[i] = two<T>(a.w[2 * i], inverse) | two<T>(a.w[2 * i + 1], inverse) << 16;
    v.w[2 + i] = two<T>(b.w[2 * i], inverse) | two<T>(b.w[2 * i + 1], inverse) << 16;
  }
  return v;
}

// The first element of a token's slot, or -1.
INLINE long long place(const downcast_fp8 &p, long long token) {
  const long long slot = p.loc[token] * p.mult + p.offset;
  return slot >= 0 && slot < p.slots ? slot * p.row : -1;
}

template <typename T> INLINE void by_sixteen(const downcast_fp8 &p) {
  const float k_inverse = reciprocal<T>(p.k_scale), v_inverse = reciprocal<T>(p.v_scale);
  const unsigned pieces = static_cast<unsigned>(p.row / 16), all = static_cast<unsigned>(p.tokens) * pieces;
  for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < all; i += gridDim.x * THREADS) {
    const unsigned token = i / pieces, piece = i - token * pieces;
    const long long to = place(p, token);
    if (to < 0)
      continue;
    const vec16 k = sixteen<T>(static_cast<const vec16 *>(p.k) + 2ull * i, k_inverse);
    const vec16 v = sixteen<T>(static_cast<const vec16 *>(p.v) + 2ull * i, v_inverse);
    store16(static_cast<unsigned char *>(p.k_out) + to + piece * 16ull, k);
    store16(static_cast<unsigned char *>(p.v_out) + to + piece * 16ull, v);
  }
}

template <typename T> INLINE void one_by_one(const downcast_fp8 &p) {
  const float k_inverse = reciprocal<T>(p.k_scale), v_inverse = reciprocal<T>(p.v_scale);
  const long long all = p.tokens * p.row;
  for (long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x; i < all;
       i += static_cast<long long>(gridDim.x) * THREADS) {
    const long long token = i / p.row, to = place(p, token);
    if (to < 0)
      continue;
    const long long at = to + (i - token * p.row);
    const float k = divided<T>(static_cast<const unsigned short *>(p.k)[i], k_inverse);
    const float v = divided<T>(static_cast<const unsigned short *>(p.v)[i], v_inverse);
    static_cast<unsigned char *>(p.k_out)[at] = static_cast<unsigned char>(e4m3_pair(k, 0));
    static_cast<unsigned char *>(p.v_out)[at] = static_cast<unsigned char>(e4m3_pair(v, 0));
  }
}

KERNEL(downcast_bf16, downcast_fp8) {
  by_sixteen<bf16>(p);
}
KERNEL(downcast_fp16, downcast_fp8) {
  by_sixteen<fp16>(p);
}
KERNEL(downcast_bf16_any, downcast_fp8) {
  one_by_one<bf16>(p);
}
KERNEL(downcast_fp16_any, downcast_fp8) {
  one_by_one<fp16>(p);
}
