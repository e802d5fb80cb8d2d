// s = log2(2^s_a + 2^s_b), v = v_a * 2^(s_a - s) + v_b * 2^(s_b - s), row by row.
//
// A row belongs to a group of lanes of one warp, each with 8 neighbours of it at a time. All of a group have read s_a and
// s_b, and a lane has read its values, before anything is written: the outputs may be the inputs themselves.
constexpr int THREADS = 256;
#include <elements.cuh>

// The weights of a and of b, and the new logarithm.
struct weights {
  float a, b, s;
};

INLINE weights weigh(float s_a, float s_b) {
  const float most = fmaxf(s_a, s_b), a = exp2f(s_a - most), b = exp2f(s_b - most), sum = a + b;
  return {a / sum, b / sum, log2f(sum) + most};
}

template <typename T> INLINE unsigned merged(unsigned a, unsigned b, const weights &w) {
  typedef unsigned short bits;
  const bits low = T::narrow(w.a * T::widen(static_cast<bits>(a)) + w.b * T::widen(static_cast<bits>(b)));
  const bits high = T::narrow(w.a * T::widen(static_cast<bits>(a >> 16)) + w.b * T::widen(static_cast<bits>(b >> 16)));
  return low | static_cast<unsigned>(high) << 16;
}

template <typename T, bool WHOLE> INLINE void merge(const merge_state &p) {
  const int lane = threadIdx.x % p.lanes;
  const long long groups = static_cast<long long>(gridDim.x) * (THREADS / p.lanes);
  // All lanes of a warp make as many turns, for the barrier.
  const long long first = static_cast<long long>(blockIdx.x) * (THREADS / p.lanes) + threadIdx.x / p.lanes,
                  turns = (p.rows + groups - 1) / groups;
  for (long long turn = 0; turn < turns; turn++) {
    const long long row = first + turn * groups;
    const bool is_row = row < p.rows;
    weights w = {0, 0, 0};
    if (is_row)
      w = weigh(p.s_a[row], p.s_b[row]);
    __syncwarp();
    if (is_row && lane == 0)
      p.s[row] = w.s;
    if (!is_row)
      continue;
    if (WHOLE) {
      for (long long i = row * p.width + lane * 8; i < (row + 1) * p.width; i += p.lanes * 8) {
        const vec16 a = load16(static_cast<const unsigned short *>(p.v_a) + i);
        const vec16 b = load16(static_cast<const unsigned short *>(p.v_b) + i);
        vec16 v;
#pragma unroll
        for (int j = 0; j < 4; j++)
          v.w[j] = merged<T>(a.w[j], b.w[j], w);
        store16(static_cast<unsigned short *>(p.v) + i, v);
      }
    } else {
      for (long long i = row * p.width + lane; i < (row + 1) * p.width; i += p.lanes)
        static_cast<unsigned short *>(p.v)[i] = static_cast<unsigned short>(
            merged<T>(static_cast<const unsigned short *>(p.v_a)[i], static_cast<const unsigned short *>(p.v_b)[i], w));
    }
  }
}

KERNEL(merge_bf16, merge_state) {
  merge<bf16, true>(p);
}
KERNEL(merge_fp16, merge_state) {
  merge<fp16, true>(p);
}
KERNEL(merge_bf16_any, merge_state) {
  merge<bf16, false>(p);
}
KERNEL(merge_fp16_any, merge_state) {
  merge<fp16, false>(p);
}
