// What the kernels need of the device: bf16 in 16-byte pieces, the tensor core, exchange in a warp, copies into shared
// memory, sums handed from block to block, the wait for the kernel before. Everything that is PTX is here, so that
// tests/jit/emulated_device.cuh can run the kernels themselves on a CPU with a device.cuh of its own.
// No CUDA header: NVRTC then needs no include folder, and compiles faster.
#pragma once

typedef unsigned short bf16;

struct alignas(16) vec16 { // eight bf16, the lower index in the lower half of each word
  unsigned x, y, z, w;
};

struct alignas(16) quad {
  float f[4];
};

// Weights are read once by one block: not worth a line of the first-level cache, and the first to leave the second.
// (The launch says the latter too, jit/launch.c; saying both was measured to pay.) Volatile keeps the loads in the
// order of the text: all weights of a batch are under way before the first activation is waited for. Not ld.global.nc:
// the assembler moves such loads over wait_for_previous, in either direction.
__device__ __forceinline__ vec16 load_weight(const vec16 *p) {
  unsigned long long policy;
  vec16 v;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p), "l"(policy));
  return v;
}

__device__ __forceinline__ vec16 load_activation(const vec16 *p) {
  vec16 v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}

// To nearest, ties to even; a NaN stays a NaN.
__device__ __forceinline__ bf16 to_bf16(float f) {
  bf16 b;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(f));
  return b;
}

// Four neighbours at a multiple of their size, in one store: of a struct the compiler makes four.
__device__ __forceinline__ void store4(float *to, const quad &q) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(q.f[0]), "f"(q.f[1]), "f"(q.f[2]), "f"(q.f[3])
               : "memory");
}
__device__ __forceinline__ void store4(bf16 *to, const quad &q) { // the second operand goes to the lower half
  asm volatile("{\n"
               ".reg .b32 low, high;\n"
               "cvt.rn.bf16x2.f32 low, %2, %1;\n"
               "cvt.rn.bf16x2.f32 high, %4, %3;\n"
               "st.global.v2.b32 [%0], {low, high};\n"
               "}" ::"l"(to),
               "f"(q.f[0]), "f"(q.f[1]), "f"(q.f[2]), "f"(q.f[3])
               : "memory");
}

// What the lane has whose number differs in the bits of `mask`.
__device__ __forceinline__ float from_lane_xor(float f, int mask) {
  return __shfl_xor_sync(0xffffffffu, f, mask);
}

// The same value, which the assembler can't compute again: it would do so after the last data have come, when all wait.
__device__ __forceinline__ unsigned kept(unsigned value) {
  return __shfl_xor_sync(0xffffffffu, value, 0);
}

// c[16 x 8] += a[16 x 16] b[16 x 8], bf16 with fp32 sums. Lane l = 4 g + q holds of a: x = row g, columns 2q and 2q+1;
// y = row g+8, the same columns; z, w = as x, y but columns 2q+8 and 2q+9; of b: b0 = rows 2q and 2q+1 of column g; b1
// = rows 2q+8 and 2q+9; of c: c[0], c[1] = row g, columns 2q and 2q+1; c[2], c[3] = row g+8. (PTX ISA, mma.m16n8k16)
__device__ __forceinline__ void mma_16x8x16(float (&c)[4], const vec16 &a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

// The dynamic shared memory of the block.
__device__ __forceinline__ unsigned char *block_shared() {
  extern __shared__ __align__(128) unsigned char dynamic_shared[];
  return dynamic_shared;
}

// An address in shared memory, to be made once: every time costs instructions.
typedef unsigned shared_t;
__device__ __forceinline__ shared_t shared_address(const void *p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
struct pair {
  float f[2];
};
__device__ __forceinline__ void store_shared(shared_t to, float f) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(f) : "memory");
}
__device__ __forceinline__ void store_shared2(shared_t to, const pair &p) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(p.f[0]), "f"(p.f[1]) : "memory");
}
__device__ __forceinline__ pair load_shared2(shared_t from) {
  pair p;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(p.f[0]), "=f"(p.f[1]) : "r"(from) : "memory");
  return p;
}
__device__ __forceinline__ quad load_shared4(shared_t from) {
  quad q;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(q.f[0]), "=f"(q.f[1]), "=f"(q.f[2]), "=f"(q.f[3])
               : "r"(from)
               : "memory");
  return q;
}

// 16 bytes into shared memory, past the registers, from so many bytes behind the address. A thread's copies form
// groups; copies_wait<LEFT> waits until at most LEFT groups of this thread are under way. What other threads copied is
// there after a barrier behind their wait.
template <int BYTES> __device__ __forceinline__ void copy16(shared_t to, const vec16 *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1 + %2], 16;" ::"r"(to), "l"(from), "n"(BYTES) : "memory");
}
__device__ __forceinline__ void copies_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int LEFT> __device__ __forceinline__ void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

// Four matrices of 8 x 8 bf16, as an mma takes them. Lane l names where row l % 8 of matrix l / 8 is, 16 bytes, and
// gets of each matrix columns 2q and 2q+1 of row g. (PTX ISA, ldmatrix)
__device__ __forceinline__ vec16 load_matrices(shared_t row) {
  vec16 v;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(row)
               : "memory");
  return v;
}

// --- the kernel before, which this one was launched to overlap with (programmatic dependent launch) ---

// The option PDL is as sgl_jit_pdl: 0 not launched so, 1 weights may be fetched before the other one ends, 2 they may
// not. It is compiled in, since instructions for it cost 0.1 us also where they are never executed.

// Everything that the kernel before wrote is there.
__device__ __forceinline__ void wait_for_previous() {
#if PDL
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// The next one may be started; it waits in its turn for the end of this one.
__device__ __forceinline__ void let_next_start() {
#if PDL
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// --- blocks that share K of a tile: a cluster ---

#if CLUSTER > 1
// Counts bytes that other blocks push, for one use. Everyone may push after meet_wait; the bytes to come are named
// here.
__device__ __forceinline__ void barrier_start(shared_t barrier, int bytes) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
               "fence.mbarrier_init.release.cluster;\n"
               "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void barrier_wait(shared_t barrier) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], 0;\n"
               "@!done bra again;\n"
               "}" ::"r"(barrier)
               : "memory");
}
// Each block of the cluster says that its barrier is there, and learns that the others' are.
__device__ __forceinline__ void meet_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void meet_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Writes to the same place in the shared memory of the block `rank` of the cluster, and tells its barrier.
__device__ __forceinline__ void push(shared_t to, const quad &value, shared_t barrier, int rank) {
  asm volatile("{\n"
               ".reg .b32 there, bell;\n"
               "mapa.shared::cluster.u32 there, %0, %6;\n"
               "mapa.shared::cluster.u32 bell, %5, %6;\n"
               "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [there], {%1, %2, %3, %4}, [bell];\n"
               "}" ::"r"(to),
               "f"(value.f[0]), "f"(value.f[1]), "f"(value.f[2]), "f"(value.f[3]), "r"(barrier), "r"(rank)
               : "memory");
}
#endif
