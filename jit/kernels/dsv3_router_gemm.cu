// output[m, n] = sum over k of activations[m, k] * weights[n, k], all packed row-major.
//
// A block computes ROWS experts for up to TOKENS tokens with fp32 multiply-adds; its threads share K in pieces of
// eight. Each output is summed in one fixed order that depends on K and WARPS only: the result of a token does not
// change with the number of tokens, nor from run to run.
//
// Set by the compile options (jit/paths.c): N, K, ROWS (divides N), WARPS, OUTPUT_F32 (else bf16).
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

constexpr int THREADS = WARPS * 32;
constexpr int VECTORS = K / 8;                            // 16-byte pieces of a row
constexpr int ROUNDS = (VECTORS + THREADS - 1) / THREADS; // pieces of a row for each thread
constexpr int MOST = ROWS < 4 ? 4 : 2;                    // so that the weights of a batch stay in registers
constexpr int BATCH = ROUNDS < MOST ? ROUNDS : MOST;      // weight loads in flight: BATCH * ROWS for each thread

__device__ __forceinline__ float dot8(const vec16 &a, const vec16 &b, float sum) {
  sum = __fmaf_rn(bf16_low(a.x), bf16_low(b.x), sum);
  sum = __fmaf_rn(bf16_high(a.x), bf16_high(b.x), sum);
  sum = __fmaf_rn(bf16_low(a.y), bf16_low(b.y), sum);
  sum = __fmaf_rn(bf16_high(a.y), bf16_high(b.y), sum);
  sum = __fmaf_rn(bf16_low(a.z), bf16_low(b.z), sum);
  sum = __fmaf_rn(bf16_high(a.z), bf16_high(b.z), sum);
  sum = __fmaf_rn(bf16_low(a.w), bf16_low(b.w), sum);
  return __fmaf_rn(bf16_high(a.w), bf16_high(b.w), sum);
}

template <int TOKENS>
__device__ __forceinline__ void router(output_t *output, const bf16 *activations, const bf16 *weights, int tokens) {
  extern __shared__ float shared[]; // [WARPS][TOKENS][ROWS]
  const int thread = threadIdx.x;
  const int row0 = blockIdx.x * ROWS;
  const int token0 = blockIdx.y * TOKENS;

  const vec16 *weight[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++)
    weight[r] = reinterpret_cast<const vec16 *>(weights + static_cast<size_t>(row0 + r) * K);
  const vec16 *activation = reinterpret_cast<const vec16 *>(activations);
  int offset[TOKENS]; // 64 tokens of 2^24 values: fits (jit/checks.c)
#pragma unroll
  for (int m = 0; m < TOKENS; m++) // past the last token: the last one again, never stored
    offset[m] = (token0 + m < tokens ? token0 + m : tokens - 1) * VECTORS;

  float sum[TOKENS][ROWS] = {};
  for (int round0 = 0; round0 < ROUNDS; round0 += BATCH) {
    vec16 w[BATCH][ROWS];
#pragma unroll
    for (int j = 0; j < BATCH; j++) {
      const int v = (round0 + j) * THREADS + thread;
      if (v < VECTORS) {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
          w[j][r] = load_weight(weight[r] + v);
      }
    }
#pragma unroll
    for (int j = 0; j < BATCH; j++) {
      const int v = (round0 + j) * THREADS + thread;
      if (v < VECTORS) {
#pragma unroll
        for (int m = 0; m < TOKENS; m++) {
          const vec16 a = load_activation(activation + (offset[m] + v));
#pragma unroll
          for (int r = 0; r < ROWS; r++)
            sum[m][r] = dot8(a, w[j][r], sum[m][r]);
        }
      }
    }
  }

#pragma unroll
  for (int m = 0; m < TOKENS; m++) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const float f = warp_sum(sum[m][r]);
      if (thread % 32 == 0)
        shared[(thread / 32 * TOKENS + m) * ROWS + r] = f;
    }
  }
  __syncthreads();
  for (int i = thread; i < TOKENS * ROWS; i += THREADS) {
    const int token = token0 + i / ROWS;
    float f = 0;
#pragma unroll
    for (int warp = 0; warp < WARPS; warp++)
      f += shared[warp * TOKENS * ROWS + i];
    if (token < tokens)
      output[static_cast<size_t>(token) * N + row0 + i % ROWS] = to_output(f);
  }
}

#define ENTRY(TOKENS)                                                                                                  \
  extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
      router_##TOKENS(output_t *output, const bf16 *activations, const bf16 *weights, int tokens) {                    \
    router<TOKENS>(output, activations, weights, tokens);                                                              \
  }
ENTRY(1)
ENTRY(2)
ENTRY(4)
ENTRY(8)
ENTRY(16)
