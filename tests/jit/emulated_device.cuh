// A device.cuh for the CPU: with it the kernels' own text is compiled by the C++ compiler and run, block after block, each
// thread a context of its own that is switched at barriers, shuffles and tensor operations. fake_nvrtc.c compiles,
// fake_cuda.c launches. Index errors show as wrong sums, as NaN (shared memory starts as NaN), as a touched canary behind
// the shared memory, as a deadlock, or as a fault (the tests put tensors against unmapped pages).
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <ucontext.h>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#define __shared__ __thread // not thread_local: g++ 12 calls an initialiser that there is none of

typedef unsigned short bf16;
struct alignas(16) vec16 {
  unsigned x, y, z, w;
};

namespace emulator {
enum { SHARED_FLOATS = 32 * 1024, STACK_BYTES = 64 * 1024 };
enum state { READY, AT_WARP_BARRIER, AT_BLOCK_BARRIER, DONE };
struct index {
  unsigned x, y, z;
};
struct fiber {
  ucontext_t context;
  enum state state;
  unsigned exchanges; // so far; the next one uses the other of two buffers, so that one barrier each is enough
};
struct exchange {
  float value[32];
  unsigned a[32][4], b[32][2];
};
struct warp {
  exchange buffers[2];
};
typedef void entry(void *, const void *, const void *, int);
struct launch {
  entry *run;
  void **arguments;
  ucontext_t scheduler;
  std::vector<fiber> fibers;
  std::vector<warp> warps;
};
static thread_local launch *current;
} // namespace emulator

static thread_local emulator::index threadIdx, blockIdx;
__thread float shared[emulator::SHARED_FLOATS];

namespace emulator {
// The C library's own: AddressSanitizer puts one in front that prints a warning, and what it does is not needed for code
// that is not instrumented.
static int change(ucontext_t *from, const ucontext_t *to) {
  static int (*const own)(ucontext_t *, const ucontext_t *) =
      reinterpret_cast<decltype(own)>(dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), "swapcontext"));
  return own(from, to);
}

static void wait(enum state where) {
  fiber &own = current->fibers[threadIdx.x];
  own.state = where;
  change(&own.context, &current->scheduler);
}

static void thread_main() {
  void **p = current->arguments;
  current->run(*(void **)p[0], *(const void **)p[1], *(const void **)p[2], *(int *)p[3]);
  current->fibers[threadIdx.x].state = DONE;
}

// Lets the threads of a warp or block go on that all wait at the same barrier or are done. False when there are none.
static bool release(size_t first, size_t last, enum state where) {
  bool some = false;
  for (size_t i = first; i < last; i++) {
    if (current->fibers[i].state != where && current->fibers[i].state != DONE)
      return false;
    some = some || current->fibers[i].state == where;
  }
  for (size_t i = first; i < last; i++)
    if (current->fibers[i].state == where)
      current->fibers[i].state = READY;
  return some;
}

static bool run_block(std::vector<char> &stacks) {
  std::vector<fiber> &fibers = current->fibers;
  for (size_t i = 0; i < fibers.size(); i++) {
    getcontext(&fibers[i].context);
    fibers[i].context.uc_stack.ss_sp = &stacks[i * STACK_BYTES];
    fibers[i].context.uc_stack.ss_size = STACK_BYTES;
    fibers[i].context.uc_link = &current->scheduler;
    makecontext(&fibers[i].context, thread_main, 0);
    fibers[i].state = READY;
    fibers[i].exchanges = 0;
  }
  for (;;) {
    bool moved = false;
    for (size_t i = 0; i < fibers.size(); i++) {
      while (fibers[i].state == READY) {
        threadIdx.x = (unsigned)i;
        change(&current->scheduler, &fibers[i].context);
        moved = true;
      }
    }
    for (size_t i = 0; i < fibers.size(); i += 32)
      moved = release(i, i + 32, AT_WARP_BARRIER) || moved;
    moved = release(0, fibers.size(), AT_BLOCK_BARRIER) || moved;
    bool done = true;
    for (const fiber &f : fibers)
      done = done && f.state == DONE;
    if (done)
      return true;
    if (!moved)
      return false; // a deadlock: threads wait at different barriers
  }
}

static exchange &next_exchange() {
  return current->warps[threadIdx.x / 32].buffers[current->fibers[threadIdx.x].exchanges++ % 2];
}
} // namespace emulator

// 0, or 1 when threads deadlocked or wrote past their shared memory.
extern "C" int emulate_launch(emulator::entry *run, const unsigned grid[3], unsigned threads, unsigned shared_bytes,
                              void **arguments) {
  using namespace emulator;
  launch l;
  l.run = run;
  l.arguments = arguments;
  l.fibers.resize(threads);
  l.warps.resize(threads / 32);
  std::vector<char> stacks((size_t)threads * STACK_BYTES);
  current = &l;
  bool good = threads % 32 == 0 && shared_bytes <= sizeof shared;
  for (blockIdx.y = 0; blockIdx.y < grid[1] && good; blockIdx.y++) {
    for (blockIdx.x = 0; blockIdx.x < grid[0] && good; blockIdx.x++) {
      memset(shared, 0xff, sizeof shared); // NaN
      good = run_block(stacks);
      for (size_t i = shared_bytes; i < sizeof shared; i++)
        good = good && reinterpret_cast<unsigned char *>(shared)[i] == 0xff;
    }
  }
  current = nullptr;
  return good ? 0 : 1;
}

static inline float __uint_as_float(unsigned bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
static inline float __fmaf_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}
static inline void __syncthreads() {
  emulator::wait(emulator::AT_BLOCK_BARRIER);
}

static inline vec16 load_weight(const vec16 *p) {
  return *p;
}
static inline vec16 load_activation(const vec16 *p) {
  return *p;
}
static inline float bf16_low(unsigned pair) {
  return __uint_as_float(pair << 16);
}
static inline float bf16_high(unsigned pair) {
  return __uint_as_float(pair & 0xffff0000u);
}
static inline bf16 to_bf16(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return std::isnan(f) ? 0x7fff : (bf16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float warp_sum(float f) {
  for (unsigned distance = 16; distance; distance /= 2) {
    emulator::exchange &w = emulator::next_exchange();
    w.value[threadIdx.x % 32] = f;
    emulator::wait(emulator::AT_WARP_BARRIER);
    f += w.value[threadIdx.x % 32 ^ distance];
  }
  return f;
}

// From the fragment tables of the PTX ISA (mma.m16n8k16, .bf16), element by element.
static inline void mma_16x8x16(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                               unsigned b1) {
  emulator::exchange &w = emulator::next_exchange();
  const unsigned lane = threadIdx.x % 32, a[4] = {a0, a1, a2, a3}, b[2] = {b0, b1};
  memcpy(w.a[lane], a, sizeof a);
  memcpy(w.b[lane], b, sizeof b);
  emulator::wait(emulator::AT_WARP_BARRIER);
  for (unsigned i = 0; i < 4; i++) {
    const unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    double sum = c[i];
    for (unsigned k = 0; k < 16; k++) {
      const unsigned from_a = w.a[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2];
      const unsigned from_b = w.b[column * 4 + k % 8 / 2][k / 8];
      sum += (double)(k % 2 ? bf16_high(from_a) : bf16_low(from_a)) * (k % 2 ? bf16_high(from_b) : bf16_low(from_b));
    }
    c[i] = (float)sum;
  }
}
