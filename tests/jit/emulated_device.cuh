// A device.cuh for the CPU: with it the kernels' own text is compiled by the C++ compiler and run, block after block,
// each thread a context of its own that is switched at barriers, shuffles and tensor operations; the blocks of a
// cluster run together. fake_nvrtc.c compiles, fake_cuda.c launches. Index errors show as wrong sums, as NaN (shared
// memory starts as NaN), as a touched canary behind the shared memory, as a deadlock, or as a fault (the tests put
// tensors against unmapped pages). A copy into shared memory destroys what is there at once and arrives no sooner than
// its thread waits for it, and what is pushed to a block comes only after that block has met the others: who reads or
// pushes too early, or copies over what is still to be read, reads NaN or fails. So does a launch that overlaps with
// the kernel before and reads something before its wait that may not be read there.
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
#define __launch_bounds__(threads, blocks)
#define __cluster_dims__(x, y, z)

typedef unsigned short bf16;
struct alignas(16) vec16 {
  unsigned x, y, z, w;
};
struct alignas(16) quad {
  float f[4];
};

namespace emulator {
enum { SHARED_BYTES = 256 * 1024, STACK_BYTES = 64 * 1024 };
enum state { READY, AT_WARP_BARRIER, AT_BLOCK_BARRIER, AT_CLUSTER_BARRIER, AT_PUSHES, DONE };
struct index {
  unsigned x, y, z;
};
struct copy {
  void *to;
  const vec16 *from;
};
struct fiber {
  ucontext_t context;
  enum state state;
  struct index block;
  bool waited;        // for the kernel before
  bool met;           // the other blocks of the cluster
  unsigned exchanges; // so far; the next one uses the other of two buffers, so that one barrier each is enough
  std::vector<std::vector<copy>> copies; // groups that are under way, the oldest first; the last one is still open
};
struct exchange {
  float value[32];
  const unsigned char *row[32];
  unsigned a[32][4], b[32][2];
};
struct warp {
  exchange buffers[2];
};
struct block {
  std::vector<vec16> shared; // aligned
  long pushed, expected;     // bytes; expected is -1 before the barrier is started
  size_t arrived;            // threads that have come to the meeting
};
typedef void entry(void *, const void *, const void *, int, int);
struct launch {
  entry *run;
  void **arguments;
  ucontext_t scheduler;
  unsigned threads; // of a block
  size_t running;   // index into fibers
  bool wrong;
  std::vector<fiber> fibers; // of all blocks that run
  std::vector<warp> warps;
  std::vector<block> blocks;
};
static thread_local launch *current;
} // namespace emulator

static thread_local emulator::index threadIdx, blockIdx;

namespace emulator {
// The C library's own: AddressSanitizer puts one in front that prints a warning, and what it does is not needed for
// code that is not instrumented.
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

static fiber &own_fiber() {
  return current->fibers[current->running];
}
static block &own_block() {
  return current->blocks[current->running / current->threads];
}

static void require(bool condition) {
  current->wrong |= !condition;
}
// Of a launch that overlaps: activations are read, and everything else is done, behind the wait; weights may be
// earlier.
static void require_waited(const vec16 *read) {
  const bf16 *a = *static_cast<const bf16 *const *>(current->arguments[1]);
  const size_t count = static_cast<size_t>(*static_cast<int *>(current->arguments[3])) * K;
  const bool weight =
      read && (reinterpret_cast<const bf16 *>(read) < a || reinterpret_cast<const bf16 *>(read) >= a + count);
  require(own_fiber().waited || PDL == 0 || (PDL == 1 && weight));
}

static void thread_main() {
  void **p = current->arguments;
  current->run(*(void **)p[0], *(const void **)p[1], *(const void **)p[2], *(int *)p[3], *(int *)p[4]);
  require_waited(nullptr);
  current->fibers[current->running].state = DONE;
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

static bool release_waiting(enum state where, bool (*may)(const block &)) {
  bool some = false;
  for (size_t i = 0; i < current->fibers.size(); i++)
    if (current->fibers[i].state == where && may(current->blocks[i / current->threads])) {
      current->fibers[i].state = READY;
      some = true;
    }
  return some;
}

static bool all_pushed(const block &b) {
  return b.expected >= 0 && b.pushed == b.expected;
}
static bool all_met(const block &) {
  for (const block &b : current->blocks)
    if (b.arrived != current->threads)
      return false;
  return true;
}

// The blocks first.x ... of the grid, which run together.
static bool run_blocks(struct index first, std::vector<char> &stacks) {
  std::vector<fiber> &fibers = current->fibers;
  for (block &b : current->blocks) {
    b.shared.assign(SHARED_BYTES / sizeof(vec16), {~0u, ~0u, ~0u, ~0u}); // NaN
    b.pushed = 0;
    b.expected = -1;
    b.arrived = 0;
  }
  for (size_t i = 0; i < fibers.size(); i++) {
    getcontext(&fibers[i].context);
    fibers[i].context.uc_stack.ss_sp = &stacks[i * STACK_BYTES];
    fibers[i].context.uc_stack.ss_size = STACK_BYTES;
    fibers[i].context.uc_link = &current->scheduler;
    makecontext(&fibers[i].context, thread_main, 0);
    fibers[i].state = READY;
    fibers[i].waited = fibers[i].met = false;
    fibers[i].exchanges = 0;
    fibers[i].copies.assign(1, {});
    fibers[i].block = first;
    fibers[i].block.x += (unsigned)(i / current->threads);
  }
  for (;;) {
    bool moved = false;
    for (size_t i = 0; i < fibers.size(); i++) {
      while (fibers[i].state == READY) {
        current->running = i;
        threadIdx.x = (unsigned)(i % current->threads);
        blockIdx = fibers[i].block;
        change(&current->scheduler, &fibers[i].context);
        moved = true;
      }
    }
    for (size_t i = 0; i < fibers.size(); i += 32)
      moved = release(i, i + 32, AT_WARP_BARRIER) || moved;
    for (size_t i = 0; i < fibers.size(); i += current->threads)
      moved = release(i, i + current->threads, AT_BLOCK_BARRIER) || moved;
    moved = release_waiting(AT_CLUSTER_BARRIER, all_met) || moved;
    moved = release_waiting(AT_PUSHES, all_pushed) || moved;
    bool done = true;
    for (const fiber &f : fibers)
      done = done && f.state == DONE;
    if (done)
      return !current->wrong;
    if (!moved)
      return false; // a deadlock: threads wait at different barriers, or for what nobody sends
  }
}

static exchange &next_exchange() {
  return current->warps[current->running / 32].buffers[own_fiber().exchanges++ % 2];
}
} // namespace emulator

// 0, or 1 when threads deadlocked, wrote past their shared memory, pushed to a block that was not ready or did not wait
// for the kernel before.
extern "C" int emulate_launch(emulator::entry *run, const unsigned grid[3], unsigned threads, unsigned shared_bytes,
                              void **arguments) {
  using namespace emulator;
  const unsigned together = grid[0] % CLUSTER == 0 ? CLUSTER : 1;
  launch l;
  l.run = run;
  l.arguments = arguments;
  l.threads = threads;
  l.wrong = false;
  l.fibers.resize((size_t)threads * together);
  l.warps.resize(l.fibers.size() / 32);
  l.blocks.resize(together);
  std::vector<char> stacks(l.fibers.size() * STACK_BYTES);
  current = &l;
  bool good = threads % 32 == 0 && shared_bytes <= SHARED_BYTES;
  for (unsigned y = 0; y < grid[1] && good; y++) {
    for (unsigned x = 0; x < grid[0] && good; x += together) {
      good = run_blocks({x, y, 0}, stacks);
      for (const block &b : l.blocks)
        for (size_t i = shared_bytes; i < SHARED_BYTES; i++)
          good = good && reinterpret_cast<const unsigned char *>(b.shared.data())[i] == 0xff;
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

static inline void __syncwarp() {
  emulator::wait(emulator::AT_WARP_BARRIER);
}

static inline unsigned char *block_shared() {
  return reinterpret_cast<unsigned char *>(emulator::own_block().shared.data());
}

typedef unsigned char *shared_t;
static inline shared_t shared_address(void *p) {
  return static_cast<unsigned char *>(p);
}
static inline void store_shared(shared_t to, float f) {
  memcpy(to, &f, sizeof f);
}
struct pair {
  float f[2];
};
static inline void store_shared2(shared_t to, const pair &p) {
  emulator::require(reinterpret_cast<uintptr_t>(to) % 8 == 0);
  memcpy(to, p.f, sizeof p.f);
}
static inline pair load_shared2(shared_t from) {
  emulator::require(reinterpret_cast<uintptr_t>(from) % 8 == 0);
  pair p;
  memcpy(p.f, from, sizeof p.f);
  return p;
}
static inline quad load_shared4(shared_t from) {
  emulator::require(reinterpret_cast<uintptr_t>(from) % 16 == 0);
  quad q;
  memcpy(q.f, from, sizeof q.f);
  return q;
}
template <typename T> static inline T kept(T value) {
  return value;
}
template <int BYTES> static inline void copy16(shared_t to, const vec16 *from) {
  from += BYTES / static_cast<int>(sizeof *from);
  emulator::require_waited(from);
  memset(to, 0xff, sizeof *from);
  emulator::own_fiber().copies.back().push_back({to, from});
}
static inline void copies_commit() {
  emulator::own_fiber().copies.emplace_back();
}
template <int LEFT> static inline void copies_wait() {
  std::vector<std::vector<emulator::copy>> &groups = emulator::own_fiber().copies;
  while (groups.size() - 1 > LEFT) {
    for (const emulator::copy &c : groups.front())
      memcpy(c.to, c.from, sizeof *c.from);
    groups.erase(groups.begin());
  }
}

static inline void wait_for_previous() {
  emulator::own_fiber().waited = true;
}
static inline void let_next_start() {
  emulator::require_waited(nullptr);
}

static inline void barrier_start(shared_t, int bytes) {
  emulator::own_block().expected = bytes;
}
static inline void barrier_wait(shared_t) {
  emulator::wait(emulator::AT_PUSHES);
}
static inline void meet_arrive() {
  emulator::own_block().arrived++;
}
static inline void meet_wait() {
  emulator::wait(emulator::AT_CLUSTER_BARRIER);
  emulator::own_fiber().met = true;
}
static inline void push(shared_t to, const quad &value, shared_t, int rank) {
  emulator::block &own = emulator::own_block(), &other = emulator::current->blocks[rank];
  emulator::require(emulator::own_fiber().met && other.expected >= 0);
  memcpy(other.shared.data() + (reinterpret_cast<vec16 *>(to) - own.shared.data()), &value, sizeof value);
  other.pushed += sizeof value;
}

static inline vec16 load_weight(const vec16 *p) {
  emulator::require_waited(p);
  return *p;
}
static inline vec16 load_activation(const vec16 *p) {
  emulator::require_waited(p);
  return *p;
}
static inline bf16 to_bf16(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return std::isnan(f) ? 0x7fff : (bf16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// A store of four to what is no multiple of their size fails on a device.
static inline void store4(float *to, const quad &q) {
  emulator::require(reinterpret_cast<uintptr_t>(to) % 16 == 0);
  memcpy(to, q.f, sizeof q.f);
}
static inline void store4(bf16 *to, const quad &q) {
  emulator::require(reinterpret_cast<uintptr_t>(to) % 8 == 0);
  for (int i = 0; i < 4; i++)
    to[i] = to_bf16(q.f[i]);
}

static inline float from_lane_xor(float f, int mask) {
  emulator::exchange &w = emulator::next_exchange();
  w.value[threadIdx.x % 32] = f;
  emulator::wait(emulator::AT_WARP_BARRIER);
  return w.value[threadIdx.x % 32 ^ static_cast<unsigned>(mask)];
}

// From the tables of the PTX ISA (ldmatrix .x4).
static inline vec16 load_matrices(shared_t row) {
  emulator::exchange &w = emulator::next_exchange();
  const unsigned lane = threadIdx.x % 32;
  unsigned words[4];
  w.row[lane] = row;
  emulator::wait(emulator::AT_WARP_BARRIER);
  for (unsigned i = 0; i < 4; i++)
    memcpy(&words[i], w.row[i * 8 + lane / 4] + lane % 4 * 4, sizeof words[i]);
  return {words[0], words[1], words[2], words[3]};
}

// From the fragment tables of the PTX ISA (mma.m16n8k16, .bf16), element by element.
static inline void mma_16x8x16(float (&c)[4], const vec16 &operand, unsigned b0, unsigned b1) {
  emulator::exchange &w = emulator::next_exchange();
  const unsigned lane = threadIdx.x % 32, a[4] = {operand.x, operand.y, operand.z, operand.w}, b[2] = {b0, b1};
  memcpy(w.a[lane], a, sizeof a);
  memcpy(w.b[lane], b, sizeof b);
  emulator::wait(emulator::AT_WARP_BARRIER);
  for (unsigned i = 0; i < 4; i++) {
    const unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    double sum = c[i];
    for (unsigned k = 0; k < 16; k++) {
      const unsigned from_a = w.a[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2];
      const unsigned from_b = w.b[column * 4 + k % 8 / 2][k / 8];
      const unsigned shift = k % 2 ? 0 : 16; // the even column is the lower half
      sum += (double)__uint_as_float(from_a << shift & 0xffff0000u) * __uint_as_float(from_b << shift & 0xffff0000u);
    }
    c[i] = (float)sum;
  }
}
