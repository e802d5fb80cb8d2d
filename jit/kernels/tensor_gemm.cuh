// output[m, n] = sum over k of activations[m, k] * weights[n, k], all packed row-major, on the tensor cores.
//
// The CLUSTER blocks of a tile share K. A block computes its part of TILE columns of the output for up to block_tokens
// tokens, the weights as the 16-row operand; its warps share the block's part of K in units of 64. A warp copies its own
// units of weights and tokens into a ring of its own, whole lines of 128 bytes at a time (half lines cost an H200 a
// seventh of its bandwidth), and reads them back in 16-byte pieces that feed two mma each: the order along K inside an
// mma is free as long as both operands follow the same one. No warp waits for another before the sums are added up, in
// the order of the warps, and then of the blocks, each of which owns the tokens m with m % CLUSTER == its rank.
//
// Where a warp's units all lie in the ring at once, a block takes tokens in passes of TOKENS over them. Otherwise it has
// one pass, and more tokens take more blocks.
//
// Each output is summed in one fixed order that depends on K, CLUSTER and WARPS only: the result of a token does not
// change with the number of tokens, nor from run to run.
//
// Set by the compile options (jit/paths.c): N, K, TILE, CLUSTER (divides K / 64), WARPS, OUTPUT_F32 (else bf16), and
// DEPTH_TOKENS, the units under way. Loops are unrolled only where it was measured to pay: compiling takes time too.
#pragma once
#include <device.cuh>

#if OUTPUT_F32
typedef float output_t;
__device__ __forceinline__ output_t to_output(float f) {
  return f;
}
#else
typedef bf16 output_t;
__device__ __forceinline__ output_t to_output(float f) {
  return to_bf16(f);
}
#endif

constexpr int BLOCK_UNITS = K / 64 / CLUSTER;
constexpr int UNITS = (BLOCK_UNITS + WARPS - 1) / WARPS; // of a warp; the last one may be missing
constexpr int LINE = 128;                                // bytes: 64 k of a row
constexpr int TENSOR_THREADS = WARPS * 32;
constexpr int QUADS = TILE / 4;
constexpr bool SHORT_SUMS = OUTPUT_F32 && UNITS > 2; // long sums inside the tensor core lose more than float32 does
constexpr int UNROLL = UNITS <= 2 ? UNITS : 1;        // how often a loop over the units is unrolled

// Whether the block has the warp's unit u: where the units do not divide evenly, the last ones are missing.
__device__ __forceinline__ bool has_unit(int u, int warp) {
  return BLOCK_UNITS % WARPS == 0 || u * WARPS + warp < BLOCK_UNITS;
}

// Partial sums of a token are TILE floats in a row; columns are exchanged so that the stores of a warp go to 32 banks.
__device__ __forceinline__ int sum_place(int token, int column) {
  return token * TILE + (column ^ token / 2 % (TILE / 8) * 8);
}

// The sum of COUNT quads, `distance` bytes apart, in their order.
template <int COUNT>
__device__ __forceinline__ quad ordered_sum(const unsigned char *first, int distance) {
  quad sum = {};
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    const quad part = *reinterpret_cast<const quad *>(first + i * distance);
#pragma unroll
    for (int j = 0; j < 4; j++)
      sum.f[j] += part.f[j];
  }
  return sum;
}

template <int TOKENS, int DEPTH>
__device__ __forceinline__ void tensor_gemm(output_t *output, const bf16 *activations, const bf16 *weights, int tokens,
                                            int block_tokens, int launch) {
  constexpr bool RESIDENT = DEPTH >= UNITS;
  constexpr int SLOTS = RESIDENT ? UNITS : DEPTH + 1;
  constexpr int GROUPS = TOKENS / 8, BLOCKS16 = TILE / 16;
  constexpr int EARLY = DEPTH < 2 ? DEPTH : 2; // units of weights that may be fetched before the kernel before ends
  constexpr int FILL = TOKENS <= 16 ? DEPTH : 1; // how often the first loop is unrolled
  const int slot_bytes = (TILE + (RESIDENT ? block_tokens : TOKENS)) * LINE;
  const int ring_bytes = SLOTS * slot_bytes;
  unsigned char *shared = block_shared(); // a ring for each warp; with a cluster, received sums and their barrier
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int g = lane / 4, q = lane % 4;        // the lane's place in an mma, see device.cuh
  const int line = lane / 8, piece = lane % 8; // the lane's place in a copy: four lines
  const int rank = blockIdx.x % CLUSTER, row0 = blockIdx.x / CLUSTER * TILE;

  const int token0 = blockIdx.y * block_tokens;
  activations += static_cast<size_t>(token0) * K;
  output += static_cast<size_t>(token0) * N;
  tokens = tokens - token0 < block_tokens ? tokens - token0 : block_tokens;

#if CLUSTER > 1
  const int most_owned = (block_tokens + CLUSTER - 1) / CLUSTER;
  float *received = reinterpret_cast<float *>(shared + WARPS * ring_bytes); // [CLUSTER][most_owned][TILE]
  barrier_t *barrier = reinterpret_cast<barrier_t *>(received + CLUSTER * most_owned * TILE);
  const int columns = N - row0 < TILE ? N - row0 : TILE;
  const int owned = tokens > rank ? (tokens - rank + CLUSTER - 1) / CLUSTER : 0;
#endif

  unsigned char *ring = shared + warp * ring_bytes;
  // Odd lines are stored with their halves exchanged, so that the reads of eight lanes go to 32 banks.
  const shared_t place = shared_address(ring) + line * LINE + (piece ^ line % 2 * 4) * 16;
  const int first = N % TILE == 0 || row0 + line < N ? row0 + line : N - 1;
  const int last = N - 1 - first; // past the last row: the last one again, never stored
  const vec16 *weight =
      reinterpret_cast<const vec16 *>(weights + static_cast<size_t>(first) * K + rank * (K / CLUSTER)) + piece;
  const vec16 *activation =
      reinterpret_cast<const vec16 *>(activations + static_cast<size_t>(line) * K + rank * (K / CLUSTER)) + piece;

  auto copy_weights = [&](int u, int slot) {
    const int unit = u * WARPS + warp;
    if (!has_unit(u, warp))
      return;
#pragma unroll
    for (int i = 0; i < TILE / 4; i++) {
      const size_t row = N % TILE == 0 || 4 * i < last ? 4 * i : last;
      copy16(place + slot * slot_bytes + i * 4 * LINE, weight + row * (K / 8) + unit * 8);
    }
  };
  auto copy_activations = [&](int u, int slot) {
    const int unit = u * WARPS + warp;
    if (!has_unit(u, warp))
      return;
#pragma unroll 1
    for (int pass = 0; pass < (RESIDENT ? tokens : 1); pass += TOKENS) {
#pragma unroll
      for (int m = 0; m < TOKENS; m += 4)
        if (pass + m + line < tokens)
          copy16(place + slot * slot_bytes + (TILE + pass + m) * LINE, activation + (pass + m) * (K / 8) + unit * 8);
    }
  };

  const int ahead = launch & LAUNCH_EARLY ? EARLY : 0;
  if (launch & LAUNCH_OVERLAPS) {
#pragma unroll 1
    for (int u = 0; u < ahead; u++)
      copy_weights(u, u);
    wait_for_previous();
  }
#pragma unroll FILL
  for (int u = 0; u < DEPTH; u++) {
    if (u >= ahead)
      copy_weights(u, u);
    copy_activations(u, u);
    copies_commit();
  }

#if CLUSTER > 1
  if (threadIdx.x == 0)
    barrier_start(barrier, CLUSTER * owned * columns * static_cast<int>(sizeof(float)));
  __syncwarp();
  meet_arrive();
#endif

#pragma unroll 1
  for (int pass = 0; pass < (RESIDENT ? tokens : 1); pass += TOKENS) {
    float sum[2][BLOCKS16][GROUPS][4] = {}; // of the halves of the units: shorter chains of dependent mma
    int slot = 0, next_slot = DEPTH;
#pragma unroll UNROLL
    for (int u = 0; u < UNITS; u++) {
      copies_wait<DEPTH - 1>();
      __syncwarp(); // also: all lanes are done with the slot that is filled next
      if constexpr (!RESIDENT) {
        if (u + DEPTH < UNITS) {
          copy_weights(u + DEPTH, next_slot);
          copy_activations(u + DEPTH, next_slot);
        }
      }
      copies_commit();
      if (has_unit(u, warp)) {
        const unsigned char *unit = ring + slot * slot_bytes;
        float fresh[2][BLOCKS16][GROUPS][4] = {};
        float(&part)[2][BLOCKS16][GROUPS][4] = SHORT_SUMS ? fresh : sum;
#pragma unroll
        for (int half = 0; half < 2; half++) {
          const unsigned char *at = unit + g * LINE + ((half * 4 + q) ^ g % 2 * 4) * 16;
          vec16 low[BLOCKS16], high[BLOCKS16];
#pragma unroll
          for (int b = 0; b < BLOCKS16; b++) {
            low[b] = *reinterpret_cast<const vec16 *>(at + 16 * b * LINE);
            high[b] = *reinterpret_cast<const vec16 *>(at + (16 * b + 8) * LINE);
          }
#pragma unroll
          for (int i = 0; i < GROUPS; i++) {
            if (i > 0 && pass + 8 * i >= tokens)
              break;
            const vec16 a = *reinterpret_cast<const vec16 *>(at + (TILE + pass + 8 * i) * LINE);
#pragma unroll
            for (int b = 0; b < BLOCKS16; b++) {
              mma_16x8x16(part[half][b][i], low[b].x, high[b].x, low[b].y, high[b].y, a.x, a.y);
              mma_16x8x16(part[half][b][i], low[b].z, high[b].z, low[b].w, high[b].w, a.z, a.w);
            }
          }
        }
        if (SHORT_SUMS) {
#pragma unroll
          for (int half = 0; half < 2; half++)
#pragma unroll
            for (int b = 0; b < BLOCKS16; b++)
#pragma unroll
              for (int i = 0; i < GROUPS; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                  sum[half][b][i][j] += part[half][b][i][j];
        }
      }
      slot = slot + 1 == SLOTS ? 0 : slot + 1;
      next_slot = next_slot + 1 == SLOTS ? 0 : next_slot + 1;
    }

    __syncwarp(); // the pass's lines of the first slot are read to the end: they take its partial sums
    float *mine = reinterpret_cast<float *>(ring + TILE * LINE);
#pragma unroll
    for (int b = 0; b < BLOCKS16; b++)
#pragma unroll
      for (int i = 0; i < GROUPS; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          mine[sum_place(pass + 8 * i + 2 * q + j % 2, 16 * b + g + j / 2 * 8)] =
              sum[0][b][i][j] + sum[1][b][i][j];
  }
  if (launch & LAUNCH_OVERLAPS)
    let_next_start();

  __syncthreads();
#if CLUSTER > 1
  meet_wait();
#endif
#pragma unroll 1
  for (int i = threadIdx.x; i < tokens * QUADS; i += TENSOR_THREADS) { // four neighbouring columns of a token
    const int m = i / QUADS, n = i % QUADS * 4;
    const quad f = ordered_sum<WARPS>(shared + TILE * LINE + sum_place(m, n) * sizeof(float), ring_bytes);
#if CLUSTER > 1
    if (n < columns)
      push(reinterpret_cast<quad *>(received + (rank * most_owned + m / CLUSTER) * TILE + n), f, barrier, m % CLUSTER);
#else
    if (N % TILE == 0 || row0 + n < N)
      store4(output + static_cast<size_t>(m) * N + row0 + n, f);
#endif
  }
#if CLUSTER > 1
  barrier_wait(barrier); // every block waits for all that is pushed to it: none ends before it has come
#pragma unroll 1
  for (int i = threadIdx.x; i < owned * QUADS; i += TENSOR_THREADS) {
    const int m = i / QUADS, n = i % QUADS * 4;
    const quad f = ordered_sum<CLUSTER>(reinterpret_cast<const unsigned char *>(received + m * TILE + n),
                                        most_owned * TILE * static_cast<int>(sizeof(float)));
    if (n < columns)
      store4(output + static_cast<size_t>(m * CLUSTER + rank) * N + row0 + n, f);
  }
#endif
}

#if CLUSTER > 1
#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#else
#define IN_CLUSTERS // even a cluster of one block starts later than a block does
#endif

// One block a multiprocessor is enough: without the 1 the compiler saves registers and loads one after the other.
#define TENSOR_ENTRY(NAME, TOKENS, DEPTH)                                                                              \
  extern "C" __global__ void IN_CLUSTERS __launch_bounds__(TENSOR_THREADS, 1) NAME(                                    \
      output_t *output, const bf16 *activations, const bf16 *weights, int tokens, int block_tokens, int launch) {      \
    tensor_gemm<TOKENS, DEPTH>(output, activations, weights, tokens, block_tokens, launch);                            \
  }
