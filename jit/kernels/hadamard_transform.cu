// output[r] = scale * H input[r], H the Hadamard matrix of Sylvester's order and of size 1 << log_size, whose element
// [i][j] is -1 to the number of ones in i & j. Sums are float32.
//
// A transform has log_size stages, one for each bit of the index: what differs in that bit alone becomes sum and
// difference. A thread takes 8 elements that differ in three bits, makes those three stages in registers, and puts them
// into shared memory; then the next three bits. The first bits come from the input, 8 neighbours; the last results go to
// the output at once. Where log_size is no multiple of 3, the last thread's eight differ in the highest three bits, and
// stages that were made already are left out. A block has as many rows as make it 512 elements, or one.
constexpr int THREADS = 1024; // at most
#include <elements.cuh>

// Elements 64 apart lie 72 apart, so that a warp's elements are in different banks whatever bits its threads differ in.
INLINE int place(int i) {
  return i + (i >> 6 << 3);
}

// The stages of the bits first, ... 2 of the index into e.
INLINE void butterflies(float (&e)[8], int first) {
#pragma unroll
  for (int bit = 0; bit < 3; bit++)
    if (bit >= first) {
#pragma unroll
      for (int i = 0; i < 8; i++)
        if (!(i >> bit & 1)) {
          const float a = e[i], b = e[i | 1 << bit];
          e[i] = a + b;
          e[i | 1 << bit] = a - b;
        }
    }
}

template <typename T> INLINE void load_eight(const hadamard &p, long long row, long long column, float (&e)[8]) {
  typedef typename T::bits bits;
  const bits *from = static_cast<const bits *>(p.input) + row * p.pitch + column;
  if (p.is_whole && row < p.rows && column < p.columns) {
    union piece {
      vec16 v[sizeof(bits) / 2];
      bits b[8];
    } eight;
    for (int i = 0; i < static_cast<int>(sizeof(bits) / 2); i++)
      eight.v[i] = load16(from + i * 16 / sizeof(bits));
#pragma unroll
    for (int i = 0; i < 8; i++)
      e[i] = T::widen(eight.b[i]);
  } else {
#pragma unroll
    for (int i = 0; i < 8; i++)
      e[i] = row < p.rows && column + i < p.columns ? T::widen(from[i]) : 0;
  }
}

template <typename T> INLINE void transform(const hadamard &p) {
  float *shared = reinterpret_cast<float *>(block_shared());
  const int size = 1 << p.log_size, eights = size / 8 * p.rows_of_block;
  const long long row0 = static_cast<long long>(blockIdx.x) * p.rows_of_block;
  typedef typename T::bits bits;
  int done = 3; // stages
  for (int at = threadIdx.x; at < eights; at += blockDim.x) {
    float e[8];
    load_eight<T>(p, row0 + (at * 8 >> p.log_size), at * 8 & (size - 1), e);
    butterflies(e, 0);
#pragma unroll
    for (int i = 0; i < 8; i++)
      shared[place(at * 8 + i)] = e[i];
  }
  for (;;) {
    __syncthreads();
    // The bits of this turn: low, low + 1 and low + 2.
    const bool is_last = done + 3 >= p.log_size;
    const int low = is_last ? p.log_size - 3 : done, first = done - low;
    for (int at = threadIdx.x; at < eights; at += blockDim.x) {
      const int index = (at >> low << (low + 3)) | (at & ((1 << low) - 1));
      float e[8];
#pragma unroll
      for (int i = 0; i < 8; i++)
        e[i] = shared[place(index + (i << low))];
      butterflies(e, first);
      if (!is_last) {
#pragma unroll
        for (int i = 0; i < 8; i++)
          shared[place(index + (i << low))] = e[i];
        continue;
      }
#pragma unroll
      for (int i = 0; i < 8; i++) {
        const int element = index + (i << low), column = element & (size - 1);
        const long long row = row0 + (element >> p.log_size);
        if (row < p.rows && column < p.columns)
          static_cast<bits *>(p.output)[row * p.columns + column] = T::narrow(e[i] * p.scale);
      }
    }
    if (is_last)
      return;
    done += 3;
  }
}

KERNEL(hadamard_fp32, hadamard) {
  transform<fp32>(p);
}
KERNEL(hadamard_bf16, hadamard) {
  transform<bf16>(p);
}
KERNEL(hadamard_fp16, hadamard) {
  transform<fp16>(p);
}
