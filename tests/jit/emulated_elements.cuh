// An elements.cuh for the CPU, as emulated_device.cuh is a device.cuh: the kernels' own text, block after block, each
// thread a context of its own that is switched at barriers and exchanges. Shared memory starts as NaN, and must not be
// written beyond what the launch asked for; 16 bytes at no multiple of 16 fail, as on a device.
#pragma once
#include <arguments.h>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <ucontext.h>
#include <vector>

#define __device__
#define INLINE inline
#define KERNEL(name, type)                                                                                             \
  static void name##_body(const type &p);                                                                              \
  extern "C" void name(void **arguments) {                                                                             \
    name##_body(*static_cast<const type *>(arguments[0]));                                                             \
  }                                                                                                                    \
  static void name##_body(const type &p)

struct alignas(16) vec16 {
  unsigned w[4];
};

namespace emulator {
enum { SHARED_BYTES = 256 * 1024, STACK_BYTES = 64 * 1024 };
enum state { READY, AT_WARP_BARRIER, AT_BLOCK_BARRIER, DONE };
struct index {
  unsigned x, y, z;
};
struct fiber {
  ucontext_t context;
  enum state state;
  unsigned exchanges; // so far; the next one uses the other of two buffers, so that one barrier each is enough
};
struct launch {
  void (*run)(void **arguments);
  void **arguments;
  ucontext_t scheduler;
  size_t running; // index into fibers
  bool wrong;
  std::vector<fiber> fibers;
  std::vector<float> lanes; // two of each thread
  std::vector<vec16> shared;
};
static thread_local launch *current;
} // namespace emulator

static thread_local emulator::index threadIdx, blockIdx, gridDim, blockDim;

namespace emulator {
// The C library's own: AddressSanitizer puts one in front that prints a warning.
static int change(ucontext_t *from, const ucontext_t *to) {
  static int (*const own)(ucontext_t *, const ucontext_t *) =
      reinterpret_cast<decltype(own)>(dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), "swapcontext"));
  return own(from, to);
}

static void wait(enum state where) {
  fiber &own = current->fibers[current->running];
  own.state = where;
  change(&own.context, &current->scheduler);
}

static void thread_main() {
  current->run(current->arguments);
  current->fibers[current->running].state = DONE;
}

// Lets threads go on that all wait at the same barrier or are done. False when there are none.
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

static bool run_block(std::vector<char> &stacks, unsigned shared_bytes) {
  std::vector<fiber> &fibers = current->fibers;
  memset(current->shared.data(), 0xff, SHARED_BYTES);
  for (size_t i = 0; i < fibers.size(); i++) {
    getcontext(&fibers[i].context);
    fibers[i].context.uc_stack.ss_sp = &stacks[i * STACK_BYTES];
    fibers[i].context.uc_stack.ss_size = STACK_BYTES;
    fibers[i].context.uc_link = &current->scheduler;
    makecontext(&fibers[i].context, thread_main, 0);
    fibers[i].state = READY;
    fibers[i].exchanges = 0;
  }
  for (bool moved = true, done = false; !done;) {
    if (!moved)
      return false; // a deadlock
    moved = false;
    done = true;
    for (size_t i = 0; i < fibers.size(); i++) {
      while (fibers[i].state == READY) {
        current->running = i;
        threadIdx.x = static_cast<unsigned>(i);
        change(&current->scheduler, &fibers[i].context);
        moved = true;
      }
      done = done && fibers[i].state == DONE;
    }
    for (size_t i = 0; i < fibers.size(); i += 32)
      moved = release(i, i + 32, AT_WARP_BARRIER) || moved;
    moved = release(0, fibers.size(), AT_BLOCK_BARRIER) || moved;
  }
  bool good = !current->wrong;
  for (size_t i = shared_bytes; i < SHARED_BYTES; i++)
    good = good && reinterpret_cast<const unsigned char *>(current->shared.data())[i] == 0xff;
  return good;
}
} // namespace emulator

// 0, or 1 when threads deadlocked, wrote past their shared memory or used a bad address.
extern "C" int emulate_launch(void (*run)(void **), const unsigned grid[3], unsigned threads, unsigned shared_bytes,
                              void **arguments) {
  using namespace emulator;
  launch l;
  l.run = run;
  l.arguments = arguments;
  l.wrong = false;
  l.fibers.resize(threads);
  l.lanes.resize(2 * threads);
  l.shared.resize(SHARED_BYTES / sizeof(vec16));
  std::vector<char> stacks(l.fibers.size() * STACK_BYTES);
  current = &l;
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {threads, 1, 1};
  bool good = threads % 32 == 0 && threads <= THREADS && shared_bytes <= SHARED_BYTES;
  for (unsigned x = 0; x < grid[0] && good; x++) {
    blockIdx = {x, 0, 0};
    good = run_block(stacks, shared_bytes);
  }
  current = nullptr;
  return good ? 0 : 1;
}

static inline float __uint_as_float(unsigned bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
static inline unsigned __float_as_uint(float f) {
  unsigned bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}
static inline void __syncthreads() {
  emulator::wait(emulator::AT_BLOCK_BARRIER);
}
static inline void __syncwarp() {
  emulator::wait(emulator::AT_WARP_BARRIER);
}
static inline unsigned char *block_shared() {
  return reinterpret_cast<unsigned char *>(emulator::current->shared.data());
}
static inline void require_aligned(const void *p) {
  emulator::current->wrong |= reinterpret_cast<uintptr_t>(p) % 16 != 0;
}
static inline vec16 load16(const void *p) {
  vec16 v;
  require_aligned(p);
  memcpy(&v, p, sizeof v);
  return v;
}
static inline void store16(void *p, const vec16 &v) {
  require_aligned(p);
  memcpy(p, &v, sizeof v);
}
static inline float from_lane_xor(float f, int mask) {
  emulator::launch &l = *emulator::current;
  const unsigned thread = threadIdx.x, buffer = l.fibers[thread].exchanges++ % 2;
  l.lanes[2 * thread + buffer] = f;
  emulator::wait(emulator::AT_WARP_BARRIER);
  return l.lanes[2 * (thread ^ static_cast<unsigned>(mask)) + buffer];
}
static inline void atomic_max(float *to, float f) {
  if (static_cast<int>(__float_as_uint(f)) > static_cast<int>(__float_as_uint(*to)))
    *to = f;
}

struct bf16 {
  typedef unsigned short bits;
  static float widen(bits b) {
    return __uint_as_float(static_cast<unsigned>(b) << 16);
  }
  static bits narrow(float f) {
    const unsigned all = __float_as_uint(f);
    return std::isnan(f) ? 0x7fff : static_cast<bits>((all + 0x7fff + (all >> 16 & 1)) >> 16);
  }
};
struct fp16 {
  typedef unsigned short bits;
  static float widen(bits b) {
    _Float16 h;
    memcpy(&h, &b, sizeof h);
    return static_cast<float>(h);
  }
  static bits narrow(float f) {
    const _Float16 h = static_cast<_Float16>(f);
    bits b;
    memcpy(&b, &h, sizeof b);
    return b;
  }
};
struct fp32 {
  typedef float bits;
  static float widen(bits b) {
    return b;
  }
  static bits narrow(float f) {
    return f;
  }
};

#include <e4m3.cuh>
