// output[m, n] = sum over k of activations[m, k] * weights[n, k], all packed row-major.
//
// One and two tokens: multiply-adds, below. More: the tensor cores (tensor_gemm.cuh), with K shared by a cluster.
//
// A block computes ROWS experts for TOKENS tokens in fp32; its threads share K in pieces of eight, with all weights of
// a batch under way at once. Each output is summed in one fixed order that depends on K and FMA_WARPS only.
//
// Set by the compile options (jit/paths.c), beside those of tensor_gemm.cuh: ROWS (divides N), FMA_WARPS.
#include <tensor_gemm.cuh>

constexpr int FMA_THREADS = FMA_WARPS * 32;
constexpr int VECTORS = K / 8;                                    // 16-byte pieces of a row
constexpr int ROUNDS = (VECTORS + FMA_THREADS - 1) / FMA_THREADS; // pieces of a row for each thread

constexpr int SUM_PITCH = (FMA_WARPS + 3) / 4 * 4;

template <int TOKENS>
__device__ __forceinline__ void router(output_t *output, const bf16 *activations, const bf16 *weights, int launch) {
  constexpr int MOST = 16 / (ROWS + TOKENS); // so that a batch stays in registers
  constexpr int BATCH = ROUNDS < MOST ? ROUNDS : MOST;
  constexpr bool WHOLE = VECTORS % (FMA_THREADS * BATCH) == 0; // no thread without a piece in any round
  float *shared = reinterpret_cast<float *>(block_shared());   // [TOKENS * ROWS][SUM_PITCH]
  const int thread = threadIdx.x;
  const int row0 = blockIdx.x * ROWS;
  const vec16 *weight = reinterpret_cast<const vec16 *>(weights) + static_cast<size_t>(row0) * VECTORS + thread;
  const vec16 *activation = reinterpret_cast<const vec16 *>(activations) + thread;

  float sum[TOKENS][ROWS][2] = {}; // even and odd k: half the chain of dependent additions
  if (launch == LAUNCH_OVERLAPS)
    wait_for_previous();
#pragma unroll 1
  for (int round0 = 0; round0 < ROUNDS; round0 += BATCH) {
    vec16 w[BATCH][ROWS], a[BATCH][TOKENS];
#pragma unroll
    for (int j = 0; j < BATCH; j++) {
      const int v = (round0 + j) * FMA_THREADS;
      if (WHOLE || v + thread < VECTORS) {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
          w[j][r] = load_weight(weight + r * VECTORS + v);
      }
    }
    if (launch & LAUNCH_EARLY && round0 == 0)
      wait_for_previous();
#pragma unroll
    for (int j = 0; j < BATCH; j++) {
      const int v = (round0 + j) * FMA_THREADS;
      if (WHOLE || v + thread < VECTORS) {
#pragma unroll
        for (int m = 0; m < TOKENS; m++)
          a[j][m] = load_activation(activation + m * VECTORS + v);
      }
    }
#pragma unroll
    for (int j = 0; j < BATCH; j++) {
      if (WHOLE || (round0 + j) * FMA_THREADS + thread < VECTORS) {
#pragma unroll
        for (int m = 0; m < TOKENS; m++) {
          const unsigned a4[4] = {a[j][m].x, a[j][m].y, a[j][m].z, a[j][m].w};
#pragma unroll
          for (int r = 0; r < ROWS; r++) {
            const unsigned w4[4] = {w[j][r].x, w[j][r].y, w[j][r].z, w[j][r].w};
#pragma unroll
            for (int i = 0; i < 4; i++) {
              sum[m][r][0] = __fmaf_rn(bf16_low(a4[i]), bf16_low(w4[i]), sum[m][r][0]);
              sum[m][r][1] = __fmaf_rn(bf16_high(a4[i]), bf16_high(w4[i]), sum[m][r][1]);
            }
          }
        }
      }
    }
  }
  if (launch & LAUNCH_OVERLAPS)
    let_next_start();

#pragma unroll
  for (int m = 0; m < TOKENS; m++) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const float f = warp_sum(sum[m][r][0] + sum[m][r][1]);
      if (thread % 32 == 0)
        shared[(m * ROWS + r) * SUM_PITCH + thread / 32] = f;
    }
  }
  __syncthreads();
  if (thread < TOKENS * ROWS) {
    float f[4] = {};
#pragma unroll
    for (int warp = 0; warp < FMA_WARPS; warp++)
      f[warp % 4] += shared[thread * SUM_PITCH + warp];
    output[static_cast<size_t>(thread / ROWS) * N + row0 + thread % ROWS] = to_output((f[0] + f[1]) + (f[2] + f[3]));
  }
}

#define FMA_ENTRY(TOKENS)                                                                                              \
  extern "C" __global__ void __launch_bounds__(FMA_THREADS, 1)                                                         \
      router_##TOKENS(output_t *output, const bf16 *activations, const bf16 *weights, int, int, int launch) {          \
    router<TOKENS>(output, activations, weights, launch);                                                              \
  }
FMA_ENTRY(1) // one entry for both costs the single token a twentieth
FMA_ENTRY(2)
#if DEPTH_16
TENSOR_ENTRY(router_16, 16, DEPTH_16)
#endif
