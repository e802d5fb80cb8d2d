/* The CPU reference backend: plain loops, double sums, one rounding at the end. */
#include "internal.h"

void jit_reference_gemm(const struct jit_gemm *gemm) {
  const uint16_t *a = gemm->a, *w = gemm->w;
  for (int m = 0; m < gemm->tokens; m++) {
    for (int n = 0; n < gemm->n; n++) {
      double sum = 0;
      for (int k = 0; k < gemm->k; k++)
        sum += jit_from_bf16(a[(size_t)m * (size_t)gemm->k + (size_t)k]) *
               jit_from_bf16(w[(size_t)n * (size_t)gemm->k + (size_t)k]);
      size_t i = (size_t)m * (size_t)gemm->n + (size_t)n;
      if (gemm->output_f32)
        ((float *)gemm->output)[i] = (float)sum;
      else
        ((uint16_t *)gemm->output)[i] = jit_to_bf16(sum);
    }
  }
}

static void decode(sgl_jit_dtype type, double values[256]) {
  for (unsigned b = 0; b < 256; b++)
    values[b] = type == SGL_JIT_DTYPE_FLOAT8_E4M3FN ? jit_from_e4m3(b) : jit_from_e5m2(b);
}

void jit_reference_bmm(const struct jit_bmm *bmm) {
  double a_values[256], b_values[256], scale = (double)*bmm->a_scale * (double)*bmm->b_scale;
  size_t m_count = (size_t)bmm->m, n_count = (size_t)bmm->n, k_count = (size_t)bmm->k;
  uint16_t *output = bmm->output;
  decode(bmm->a_type, a_values);
  decode(bmm->b_type, b_values);
  for (size_t batch = 0; batch < (size_t)bmm->batch; batch++)
    for (size_t m = 0; m < m_count; m++)
      for (size_t n = 0; n < n_count; n++) {
        const uint8_t *a = (const uint8_t *)bmm->a + (batch * m_count + m) * k_count;
        const uint8_t *b = (const uint8_t *)bmm->b + (batch * n_count + n) * k_count;
        double sum = 0;
        for (size_t k = 0; k < k_count; k++)
          sum += a_values[a[k]] * b_values[b[k]];
        sum *= scale;
        *output++ = bmm->output_type == SGL_JIT_DTYPE_BFLOAT16 ? jit_to_bf16(sum) : jit_to_fp16(sum);
      }
}
