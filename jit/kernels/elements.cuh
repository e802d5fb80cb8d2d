// What the kernels that work element by element need of the device: 16 bytes at a time, the number formats, a block's
// shared memory. PTX is here only, so that tests/jit/emulated_elements.cuh can run the kernels themselves on a CPU. No
// CUDA header: NVRTC then needs no include folder, and compiles faster.
#pragma once
#include <arguments.h>

// An entry point, which gets one struct. At most 256 threads in a block unless its body says otherwise.
#define KERNEL(name, type) extern "C" __global__ void __launch_bounds__(THREADS) name(const __grid_constant__ type p)
#define INLINE __device__ __forceinline__

struct alignas(16) vec16 {
  unsigned w[4];
};

INLINE vec16 load16(const void *p) {
  return *static_cast<const vec16 *>(p);
}
INLINE void store16(void *p, const vec16 &v) {
  *static_cast<vec16 *>(p) = v;
}

// --- number formats: narrow is to nearest, ties to even ---

struct bf16 {
  typedef unsigned short bits;
  static INLINE float widen(bits b) {
    return __uint_as_float(static_cast<unsigned>(b) << 16);
  }
  static INLINE bits narrow(float f) {
    bits b;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(f));
    return b;
  }
};
struct fp16 {
  typedef unsigned short bits;
  static INLINE float widen(bits b) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(b));
    return f;
  }
  static INLINE bits narrow(float f) {
    bits b;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(b) : "f"(f));
    return b;
  }
};
struct fp32 {
  typedef float bits;
  static INLINE float widen(bits b) {
    return b;
  }
  static INLINE bits narrow(float f) {
    return f;
  }
};

// Two numbers as float8_e4m3fn, the first in the lower byte. What is beyond 448 becomes 448, a NaN 0x7f.
#if __CUDA_ARCH__ >= 890
INLINE unsigned e4m3_pair(float low, float high) {
  unsigned short pair; // the second operand goes to the lower half
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %2, %1;" : "=h"(pair) : "f"(low), "f"(high));
  return pair;
}
#else
#include <e4m3.cuh>
#endif

// --- threads ---

INLINE float from_lane_xor(float f, int mask) {
  return __shfl_xor_sync(0xffffffffu, f, mask);
}

INLINE unsigned char *block_shared() {
  extern __shared__ __align__(128) unsigned char dynamic_shared[];
  return dynamic_shared;
}

// Of numbers that are not negative, or where the old one is.
INLINE void atomic_max(float *to, float f) {
  atomicMax(reinterpret_cast<int *>(to), __float_as_int(f));
}
