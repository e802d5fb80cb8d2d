// output[m, n] = sum over k of activations[m, k] * weights[n, k], all packed row-major, output bf16.
//
// A block computes 16 columns of the output for up to TOKENS tokens on the tensor cores, the weights as the 16-row
// operand. Its warps share K in units of 64 and add their parts up in shared memory, in the order of the warps. Both
// operands go from memory straight to registers in 16-byte loads: the order along K inside an mma is free as long as
// both operands follow the same one, so a lane takes eight neighbouring k and feeds two mma with them. Each output is
// summed in one fixed order that depends on K and WARPS only: the result of a token does not change with the number of
// tokens, nor from run to run.
//
// Set by the compile options (jit/paths.c): N, K, WARPS, PITCH (floats between the tokens of a partial sum: 16 and a
// few more, so that the stores of a warp fall into different banks).
#include <device.cuh>

constexpr int THREADS = WARPS * 32;
constexpr int UNITS = K / 64;                       // 128 bytes of a row
constexpr int ROUNDS = (UNITS + WARPS - 1) / WARPS; // units for each warp

template <int TOKENS>
__device__ __forceinline__ void fused_a(bf16 *output, const bf16 *activations, const bf16 *weights, int tokens) {
  extern __shared__ float shared[]; // [WARPS][TOKENS][PITCH]
  constexpr int GROUPS = TOKENS / 8;
  constexpr int MOST = TOKENS <= 16 ? 4 : 2;           // with more, the sums of all tokens would not fit in registers
  constexpr int BATCH = ROUNDS < MOST ? ROUNDS : MOST; // weight loads in flight: 4 * BATCH for each thread
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int g = lane / 4, q = lane % 4; // the lane's place in an mma, see device.cuh
  const int row0 = blockIdx.x * 16;
  const int token0 = blockIdx.y * TOKENS;

  const vec16 *low = reinterpret_cast<const vec16 *>(weights + static_cast<size_t>(row0 + g) * K) + q;
  const vec16 *high = low + static_cast<size_t>(8) * (K / 8);
  const vec16 *activation = reinterpret_cast<const vec16 *>(activations) + q;
  int offset[GROUPS]; // 64 tokens of 2^24 values: fits (jit/checks.c)
#pragma unroll
  for (int i = 0; i < GROUPS; i++) { // past the last token: the last one again, never stored
    const int token = token0 + 8 * i + g;
    offset[i] = (token < tokens ? token : tokens - 1) * (K / 8);
  }

  float sum[GROUPS][4] = {};
#pragma unroll(TOKENS <= 32 && ROUNDS <= 8 ? 2 : 1) // more would only cost registers
  for (int round0 = 0; round0 < ROUNDS; round0 += BATCH) {
    vec16 w[BATCH][2][2];
#pragma unroll
    for (int j = 0; j < BATCH; j++) {
      const int unit = (round0 + j) * WARPS + warp;
      if (unit < UNITS) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
          w[j][half][0] = load_weight(low + unit * 8 + half * 4);
          w[j][half][1] = load_weight(high + unit * 8 + half * 4);
        }
      }
    }
#pragma unroll
    for (int j = 0; j < BATCH; j++) {
      const int unit = (round0 + j) * WARPS + warp;
      if (unit < UNITS) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
          const vec16 &l = w[j][half][0], &h = w[j][half][1];
#pragma unroll
          for (int i = 0; i < GROUPS; i++) {
            const vec16 a = load_activation(activation + (offset[i] + unit * 8 + half * 4));
            mma_16x8x16(sum[i], l.x, h.x, l.y, h.y, a.x, a.y);
            mma_16x8x16(sum[i], l.z, h.z, l.w, h.w, a.z, a.w);
          }
        }
      }
    }
  }

  float *mine = shared + warp * TOKENS * PITCH;
#pragma unroll
  for (int i = 0; i < GROUPS; i++) {
    const int token = 8 * i + 2 * q;
    mine[token * PITCH + g] = sum[i][0];
    mine[(token + 1) * PITCH + g] = sum[i][1];
    mine[token * PITCH + g + 8] = sum[i][2];
    mine[(token + 1) * PITCH + g + 8] = sum[i][3];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < TOKENS * 8; i += THREADS) { // two neighbouring columns of a token
    const int token = token0 + i / 8, column = i % 8 * 2;
    const float *part = shared + i / 8 * PITCH + column;
    float low_sum = 0, high_sum = 0;
#pragma unroll
    for (int other = 0; other < WARPS; other++) {
      low_sum += part[other * TOKENS * PITCH];
      high_sum += part[other * TOKENS * PITCH + 1];
    }
    if (token < tokens)
      *reinterpret_cast<unsigned *>(output + static_cast<size_t>(token) * N + row0 + column) =
          to_bf16(low_sum) | static_cast<unsigned>(to_bf16(high_sum)) << 16;
  }
}

#define ENTRY(TOKENS)                                                                                                  \
  extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
      fused_a_##TOKENS(bf16 *output, const bf16 *activations, const bf16 *weights, int tokens) {                       \
    fused_a<TOKENS>(output, activations, weights, tokens);                                                             \
  }
ENTRY(8)
ENTRY(16)
ENTRY(32)
ENTRY(64)
