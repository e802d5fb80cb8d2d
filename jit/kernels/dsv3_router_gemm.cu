// output[m, n] = sum over k of activations[m, k] * weights[n, k], all packed row-major.
//
// One and two tokens: dot products, below. More: the tiles of tensor_gemm.cuh, with K shared by a cluster.
//
// A block computes ROWS experts for TOKENS tokens. Its warps share K in pieces of 256, 8 values of a row for each lane,
// with all weights of a batch under way at once. The products are the tensor core's, which has no column to spare for
// them: lane 4g + q holds segment g (32 values) of two experts as rows g and g + 8 of one operand, and segment g of a
// token as column g of the other. Of the products, those of a segment with itself are wanted, D[g][g] and D[g + 8][g]:
// in lane 4g + g / 2, numbers g % 2 and g % 2 + 2. These eight lanes are closed under xor, so three exchanges add up
// the segments. Multiply-adds take as long for one token, and longer for two.
//
// Each output is summed in one fixed order that depends on K and DOT_WARPS only.
//
// Set by the compile options (jit/paths.c), beside those of tensor_gemm.cuh: DOT_WARPS, ROWS_1, ROWS_2.
#include <tensor_gemm.cuh>

constexpr int DOT_THREADS = DOT_WARPS * 32;
constexpr int PIECES = K / 256;                              // of a row, a warp's 512 bytes each
constexpr int ROUNDS = (PIECES + DOT_WARPS - 1) / DOT_WARPS; // pieces of a row for each warp
constexpr int SUM_PITCH = (DOT_WARPS + 3) / 4 * 4;

template <int TOKENS, int ROWS>
__device__ __forceinline__ void dot_products(output_t *output, const bf16 *activations, const bf16 *weights) {
  constexpr int PAIRS = (ROWS + 1) / 2;
  constexpr int MOST = 16 / (ROWS + TOKENS); // so that a batch stays in registers
  constexpr int BATCH = ROUNDS < MOST ? ROUNDS : MOST;
  constexpr bool WHOLE = PIECES % (DOT_WARPS * BATCH) == 0; // every warp has a piece in every round
  const unsigned thread = threadIdx.x, warp = thread / 32;
  const unsigned first = blockIdx.x * ROWS,
                 row0 = first < N - ROWS ? first : N - ROWS; // the last block: some rows again
  const vec16 *weight = reinterpret_cast<const vec16 *>(weights + static_cast<size_t>(row0) * K) + thread;
  const vec16 *activation = reinterpret_cast<const vec16 *>(activations) + thread;

  vec16 w[BATCH][2 * PAIRS], a[BATCH][TOKENS];
  auto has_piece = [&](int round) { return WHOLE || round * DOT_WARPS + warp < PIECES; };
  auto load = [&](int round0) {
#pragma unroll
    for (int j = 0; j < BATCH; j++)
#pragma unroll
      for (int r = 0; r < ROWS; r++)
        if (has_piece(round0 + j))
          w[j][r] = load_weight(weight + r * (K / 8) + (round0 + j) * DOT_THREADS);
    if (PDL == 1 && round0 == 0)
      wait_for_previous();
#pragma unroll
    for (int j = 0; j < BATCH; j++)
#pragma unroll
      for (int m = 0; m < TOKENS; m++)
        if (has_piece(round0 + j))
          a[j][m] = load_activation(activation + m * (K / 8) + (round0 + j) * DOT_THREADS);
  };
  if (PDL == 2)
    wait_for_previous();
  load(0);

  const bool odd = thread & 4;                            // g is odd
  const shared_t shared = shared_address(block_shared()); // floats [TOKENS * ROWS][SUM_PITCH]
  const shared_t mine = kept(shared + (odd * SUM_PITCH + warp) * 4);
  const unsigned m_of_sum = thread / 4, row_of_sum = thread % 4; // what this thread adds up in the end
  const shared_t sums = kept(shared + (m_of_sum * ROWS + row_of_sum) * SUM_PITCH * 4);

  float sum[TOKENS][PAIRS][2][4] = {}; // of the halves of the pieces: shorter chains of dependent mma
#pragma unroll 1
  for (int round0 = 0;;) {
#pragma unroll
    for (int j = 0; j < BATCH; j++) {
      if (ROWS % 2 == 1)
        w[j][ROWS] = {0, 0, 0, 0};
#pragma unroll
      for (int p = 0; p < PAIRS; p++)
#pragma unroll
        for (int m = 0; m < TOKENS; m++) {
          const vec16 &low = w[j][2 * p], &high = w[j][2 * p + 1], &b = a[j][m];
          if (has_piece(round0 + j)) {
            mma_16x8x16(sum[m][p][0], {low.x, high.x, low.y, high.y}, b.x, b.y);
            mma_16x8x16(sum[m][p][1], {low.z, high.z, low.w, high.w}, b.z, b.w);
          }
        }
    }
    round0 += BATCH;
    if (round0 >= ROUNDS)
      break;
    load(round0);
  }
  let_next_start();

#pragma unroll
  for (int m = 0; m < TOKENS; m++)
#pragma unroll
    for (int p = 0; p < PAIRS; p++) {
      float both[4];
#pragma unroll
      for (int i = 0; i < 4; i++)
        both[i] = sum[m][p][0][i] + sum[m][p][1][i];
      // From here on even g have the one expert, odd g the other.
      float f = (odd ? both[3] : both[0]) + from_lane_xor(odd ? both[1] : both[2], 4);
      f += from_lane_xor(f, 9);
      f += from_lane_xor(f, 18);
      if (thread % 32 == 0 || (thread % 32 == 4 && 2 * p + 1 < ROWS))
        store_shared(mine + (m * ROWS + 2 * p) * SUM_PITCH * 4, f);
    }
  __syncthreads();
  if (m_of_sum < TOKENS && row_of_sum < ROWS && row0 + row_of_sum >= first) {
    float f[4] = {};
#pragma unroll
    for (int i = 0; i < DOT_WARPS; i += 4) {
      const quad part = load_shared4(sums + i * 4);
#pragma unroll
      for (int j = 0; j < 4 && i + j < DOT_WARPS; j++)
        f[j] += part.f[j];
    }
    output[static_cast<size_t>(m_of_sum) * N + row0 + row_of_sum] = to_output((f[0] + f[1]) + (f[2] + f[3]));
  }
}

#define DOT_ENTRY(TOKENS)                                                                                              \
  extern "C" __global__ void __launch_bounds__(DOT_THREADS, 1)                                                         \
      router_##TOKENS(output_t *output, const bf16 *activations, const bf16 *weights, int, int) {                      \
    dot_products<TOKENS, ROWS_##TOKENS>(output, activations, weights);                                                 \
  }
DOT_ENTRY(1)
DOT_ENTRY(2)
#if DEPTH_16
TENSOR_ENTRY(router_16, TILE_16, 16, DEPTH_16)
#endif
