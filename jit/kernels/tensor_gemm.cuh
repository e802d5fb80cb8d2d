// output[m, n] = sum over k of activations[m, k] * weights[n, k], all packed row-major, on the tensor cores.
//
// The CLUSTER blocks of a tile share K. A block computes its part of TILE columns of the output for up to block_tokens
// tokens, the weights as the 16-row operand; its warps share the block's part of K in units of 64. A warp copies its
// own units of weights and tokens into rings of its own, whole lines of 128 bytes at a time (half lines cost an H200 a
// seventh of its bandwidth), and reads them back as the tensor core wants them. No warp waits for another before the
// sums are added up, those of the warps, and then those of the blocks, each of which owns the tokens m with m % CLUSTER
// == its rank.
//
// Where a warp's units all lie in the ring at once, a block takes tokens in passes of TOKENS over them. Otherwise it
// has one pass, and more tokens take more blocks.
//
// Each output is summed in one fixed order that depends on K, CLUSTER and WARPS only: the result of a token does not
// change with the number of tokens, nor from run to run.
//
// Set by the compile options (jit/paths.c): N, K, CLUSTER (divides K / 64), WARPS, OUTPUT_F32 (else bf16), PDL
// (device.cuh), and for each number of TOKENS TILE_TOKENS and DEPTH_TOKENS, the units under way. Loops are unrolled
// only where it was measured to pay: compiling takes time too.
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
constexpr bool SHORT_SUMS = OUTPUT_F32 && UNITS > 2; // long sums inside the tensor core lose more than float32 does

// Whether the block has the warp's unit u: where the units do not divide evenly, the last ones are missing.
__device__ __forceinline__ bool has_unit(int u, unsigned warp) {
  return BLOCK_UNITS % WARPS == 0 || u < UNITS - 1 || u * WARPS + warp < BLOCK_UNITS;
}

// Where a warp of a cluster's block keeps its partial sums, so that four neighbouring columns can be pushed: a token
// has TILE floats in a row, in blocks of eight columns, which are exchanged so that the stores of a warp go to 32
// banks.
template <int TILE> __device__ __forceinline__ unsigned sum_place(unsigned token, unsigned block, unsigned column) {
  return token * TILE + (block ^ token / 2 % (TILE / 8)) * 8 + column;
}

// COUNT copies of four lines each, from the I-th one on; `even` and `odd` are the places of even and odd ones, `lines`
// the first line that is not there, counted from this lane's. A template and not a loop: then what is added to an
// address is a constant, and compiles faster.
template <int COUNT, int I = 0>
__device__ __forceinline__ void copy_lines(shared_t even, shared_t odd, const vec16 *from, int lines) {
  if constexpr (I < COUNT) {
    if (4 * I < lines)
      copy16<4 * I * K * 2>((I % 2 ? odd : even) + 4 * I * LINE, from);
    copy_lines<COUNT, I + 1>(even, odd, from, lines);
  }
}

// The sum of COUNT quads, `distance` bytes apart: those with even and with odd numbers in their order, then both.
template <int COUNT> __device__ __forceinline__ quad ordered_sum(shared_t first, int distance) {
  quad sum[2] = {};
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    const quad part = load_shared4(first + i * distance);
#pragma unroll
    for (int j = 0; j < 4; j++)
      sum[i % 2].f[j] += part.f[j];
  }
#pragma unroll
  for (int j = 0; j < 4; j++)
    sum[0].f[j] += sum[1].f[j];
  return sum[0];
}

template <int TILE, int TOKENS, int DEPTH>
__device__ __forceinline__ void tensor_gemm(output_t *output, const bf16 *activations, const bf16 *weights, int tokens,
                                            int block_tokens) {
  constexpr bool RESIDENT = DEPTH >= UNITS;
  constexpr int SLOTS = RESIDENT ? UNITS : DEPTH + 1;
  constexpr int GROUPS = TOKENS / 8, BLOCKS16 = TILE / 16;
  constexpr unsigned QUADS = TILE / 4;
  constexpr int SHORT = TOKENS <= 16 ? DEPTH : 1; // how often the loops over the first and the last units are unrolled
  const int token_bytes = (RESIDENT ? block_tokens : TOKENS) * LINE; // of a slot; one of weights has TILE lines
  const int ring_bytes = SLOTS * (TILE * LINE + token_bytes);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned line = lane / 8, piece = lane % 8; // the lane's place in a copy: four lines
  const unsigned rank = blockIdx.x % CLUSTER, row0 = blockIdx.x / CLUSTER * TILE;
  const unsigned k0 = rank * (K / CLUSTER) + warp * 64 + piece * 8; // of the lane's first copies
  const int rows = N % TILE == 0 ? TILE : N - row0 - line; // what lies in the ring past the last row is never stored
  const vec16 *weight = reinterpret_cast<const vec16 *>(weights + (static_cast<size_t>(row0 + line) * K + k0));
  const shared_t shared =
      shared_address(block_shared()); // the warps' rings; with a cluster, received sums and their barrier
  const shared_t ring = shared + warp * ring_bytes, tokens_ring = ring + SLOTS * TILE * LINE;
  // The pieces of a line are exchanged by its number modulo 8, so that the reads of eight lines go to 32 banks.
  const int even = line * LINE + (piece ^ line) * 16, odd = line * LINE + (piece ^ (line + 4)) * 16;

  auto copy_weights = [&](int u, int slot) {
    copy_lines<TILE / 4>(ring + slot * (TILE * LINE) + even, ring + slot * (TILE * LINE) + odd,
                         weight + u * (WARPS * 8), has_unit(u, warp) ? rows : 0);
  };
  if (PDL == 2)
    wait_for_previous();
  copy_weights(0, 0); // nothing else before: all that follows is later by as much
  if (PDL == 1) {
    if (DEPTH > 1)
      copy_weights(1, 1);
    wait_for_previous();
  }

  const unsigned token0 = blockIdx.y * block_tokens;
  tokens = tokens - token0 < block_tokens ? tokens - token0 : block_tokens;
  const vec16 *activation =
      reinterpret_cast<const vec16 *>(activations + (static_cast<size_t>(token0 + line) * K + k0));
  output += static_cast<size_t>(token0) * N + row0;

  auto copy_tokens = [&](int u, int slot) {
    const shared_t to = tokens_ring + slot * token_bytes;
#pragma unroll 1
    for (int pass = 0; pass < (RESIDENT ? tokens : 1); pass += TOKENS)
      copy_lines<TOKENS / 4>(to + pass * LINE + even, to + pass * LINE + odd,
                             activation + pass * (K / 8) + u * (WARPS * 8),
                             has_unit(u, warp) ? tokens - pass - static_cast<int>(line) : 0);
  };
#pragma unroll SHORT
  for (int u = 0; u < DEPTH; u++) {
    if (u > (PDL == 1)) // the first ones are under way
      copy_weights(u, u);
    copy_tokens(u, u);
    copies_commit();
  }

#if CLUSTER > 1
  const int most_owned = (block_tokens + CLUSTER - 1) / CLUSTER;
  const shared_t received = shared + WARPS * ring_bytes; // floats [CLUSTER][most_owned][TILE]
  const shared_t barrier = received + CLUSTER * most_owned * TILE * 4;
  const int columns = N - row0 < TILE ? N - row0 : TILE;
  const int owned = tokens > static_cast<int>(rank) ? (tokens - rank + CLUSTER - 1) / CLUSTER : 0;
  if (threadIdx.x == 0)
    barrier_start(barrier, CLUSTER * owned * columns * 4);
  __syncwarp();
  meet_arrive();
#endif

  // For the end.
  const shared_t sums = kept(shared + SLOTS * TILE * LINE);
  const unsigned thread = kept(threadIdx.x);

  // The rows that the lane names for an mma: of the weights 0 to 15 of two pieces, of the tokens 0 to 7 of four pieces.
  const shared_t weight_row = ring + lane % 16 * LINE, token_row = tokens_ring + lane % 8 * LINE;
  const unsigned weight_piece = (lane / 16 ^ lane % 8) * 16, token_piece = (lane / 8 ^ lane % 8) * 16;

#pragma unroll 1
  for (int pass = 0; pass < (RESIDENT ? tokens : 1); pass += TOKENS) {
    float sum[2][BLOCKS16][GROUPS][4] = {}; // of the halves of the units: shorter chains of dependent mma
    int slot = 0, free_slot = DEPTH;

    auto add_unit = [&](int u) {
      if (!has_unit(u, warp))
        return;
      float fresh[2][BLOCKS16][GROUPS][4] = {};
      float(&part)[2][BLOCKS16][GROUPS][4] = SHORT_SUMS ? fresh : sum;
#pragma unroll
      for (int half = 0; half < 2; half++) {
        vec16 w[2][BLOCKS16]; // 16 k each
#pragma unroll
        for (int step = 0; step < 2; step++)
#pragma unroll
          for (int b = 0; b < BLOCKS16; b++)
            w[step][b] = load_matrices(weight_row + slot * (TILE * LINE) + 16 * b * LINE +
                                       (weight_piece ^ (2 * half + step) * 32));
#pragma unroll
        for (int i = 0; i < GROUPS; i++) {
          const vec16 a =
              load_matrices(token_row + slot * token_bytes + (pass + 8 * i) * LINE + (token_piece ^ half * 64));
#pragma unroll
          for (int b = 0; b < BLOCKS16; b++) {
            mma_16x8x16(part[half][b][i], w[0][b], a.x, a.y);
            mma_16x8x16(part[half][b][i], w[1][b], a.z, a.w);
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
    };
    auto next = [](int s) { return s + 1 == SLOTS ? 0 : s + 1; };

#pragma unroll 1
    for (int u = 0; u < UNITS - DEPTH; u++) {
      copies_wait<DEPTH - 1>();
      __syncwarp();       // also: all lanes are done with the slot that is filled next
      if (TOKENS <= 16) { // the order that was measured to be best
        copy_tokens(u + DEPTH, free_slot);
        copy_weights(u + DEPTH, free_slot);
        copies_commit();
        add_unit(u);
      } else {
        copy_weights(u + DEPTH, free_slot);
        add_unit(u);
        copy_tokens(u + DEPTH, free_slot);
        copies_commit();
      }
      slot = next(slot);
      free_slot = next(free_slot);
    }
#pragma unroll SHORT
    for (int u = RESIDENT ? 0 : UNITS - DEPTH; u < UNITS; u++) {
      copies_wait<DEPTH - 1>();
      __syncwarp();
      copies_commit(); // of nothing: the next wait has to be for the next unit
      add_unit(u);
      slot = next(slot);
    }

    __syncwarp(); // the pass's lines of the first slot are read to the end: they take its partial sums
#if CLUSTER > 1
    const unsigned g = lane / 4, q = lane % 4; // the lane's place in an mma, see device.cuh
#pragma unroll
    for (int b = 0; b < BLOCKS16; b++)
#pragma unroll
      for (int i = 0; i < GROUPS; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          store_shared(tokens_ring + ((pass + 8 * i + j % 2) * TILE + sum_place<TILE>(2 * q, 2 * b + j / 2, g)) * 4,
                       sum[0][b][i][j] + sum[1][b][i][j]);
#else // as the mma leaves them: of eight columns of eight tokens each lane has a pair, two tokens of a column
#pragma unroll
    for (int i = 0; i < GROUPS; i++)
#pragma unroll
      for (int b = 0; b < BLOCKS16; b++)
#pragma unroll
        for (int j = 0; j < 2; j++)
          store_shared2(tokens_ring + pass * TILE * 4 + (((i * BLOCKS16 + b) * 2 + j) * 32 + lane) * 8,
                        {sum[0][b][i][2 * j] + sum[1][b][i][2 * j], sum[0][b][i][2 * j + 1] + sum[1][b][i][2 * j + 1]});
#endif
  }
  let_next_start();

  __syncthreads();
#if CLUSTER > 1
  meet_wait();
#pragma unroll 1
  for (unsigned i = thread; i < tokens * QUADS; i += TENSOR_THREADS) { // four neighbouring columns of a token
    const unsigned m = i / QUADS, n = i % QUADS * 4;
    const quad f = ordered_sum<WARPS>(sums + sum_place<TILE>(m, n / 8, n % 8) * 4, ring_bytes);
    if (static_cast<int>(n) < columns)
      push(received + ((rank * most_owned + m / CLUSTER) * TILE + n) * 4, f, barrier, m % CLUSTER);
  }
  barrier_wait(barrier); // every block waits for all that is pushed to it: none ends before it has come
#pragma unroll 1
  for (unsigned i = thread; i < owned * QUADS; i += TENSOR_THREADS) {
    const unsigned m = i / QUADS, n = i % QUADS * 4;
    const quad f = ordered_sum<CLUSTER>(received + (m * TILE + n) * 4, most_owned * TILE * 4);
    if (static_cast<int>(n) < columns)
      store4(output + (static_cast<size_t>(m * CLUSTER + rank) * N + n), f);
  }
#else
#pragma unroll 1
  for (unsigned i = thread; i < (tokens + 7u) / 8 * (TILE * 4); i += TENSOR_THREADS) { // a pair
    const unsigned m = i / (TILE * 4) * 8 + i % 4 * 2, n = i / 32 % (TILE / 8) * 8 + i % 32 / 4;
    pair sum[2] = {load_shared2(sums + i * 8)}; // of warps with even and with odd numbers
#pragma unroll
    for (int w = 1; w < WARPS; w++) {
      const pair part = load_shared2(sums + i * 8 + w * ring_bytes);
      sum[w % 2].f[0] += part.f[0], sum[w % 2].f[1] += part.f[1];
    }
    output_t *to = output + (m * N + n);
#pragma unroll
    for (int j = 0; j < 2; j++)
      if (m + j < tokens && (N % TILE == 0 || row0 + n < N))
        to[j * N] = to_output(sum[0].f[j] + sum[1].f[j]);
  }
#endif
}

#if CLUSTER > 1
#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#else
#define IN_CLUSTERS // even a cluster of one block starts later than a block does
#endif

// One block a multiprocessor is enough: without the 1 the compiler saves registers and loads one after the other.
#define TENSOR_ENTRY(NAME, TILE, TOKENS, DEPTH)                                                                        \
  extern "C" __global__ void IN_CLUSTERS __launch_bounds__(TENSOR_THREADS, 1)                                          \
      NAME(output_t *output, const bf16 *activations, const bf16 *weights, int tokens, int block_tokens) {             \
    tensor_gemm<TILE, TOKENS, DEPTH>(output, activations, weights, tokens, block_tokens);                              \
  }
