/* The CPU reference backend: plain loops, double sums, one rounding at the end. */
#include "internal.h"
#include <math.h>
#include <string.h>

static double from_bf16(uint16_t b) {
  uint32_t bits = (uint32_t)b << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* To nearest, ties to even, in one step: going through float could round a value twice and miss its neighbour. */
static uint16_t to_bf16(double d) {
  float f = (float)d;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if (isnan(d))
    return (uint16_t)(bits >> 16 | 0x40); /* quiet, sign kept */
  if ((bits & 0xffff) == 0x8000) {        /* looks like a tie: is it one? */
    if (fabs(d) > fabs((double)f))
      bits++;
    else if (fabs(d) < fabs((double)f))
      bits--;
  }
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void jit_reference_gemm(const struct jit_gemm *gemm) {
  const uint16_t *a = gemm->a, *w = gemm->w;
  for (int m = 0; m < gemm->tokens; m++) {
    for (int n = 0; n < gemm->n; n++) {
      double sum = 0;
      for (int k = 0; k < gemm->k; k++)
        sum += from_bf16(a[(size_t)m * (size_t)gemm->k + (size_t)k]) *
               from_bf16(w[(size_t)n * (size_t)gemm->k + (size_t)k]);
      size_t i = (size_t)m * (size_t)gemm->n + (size_t)n;
      if (gemm->output_f32)
        ((float *)gemm->output)[i] = (float)sum;
      else
        ((uint16_t *)gemm->output)[i] = to_bf16(sum);
    }
  }
}

/* --- FP8, by the OCP specification "OFP8" --- */

/* 1 sign, 4 exponent (bias 7) and 3 mantissa bits; no infinity, and one NaN. */
static double from_e4m3(unsigned b) {
  int exponent = (int)(b >> 3 & 15), mantissa = (int)(b & 7);
  double value = exponent == 15 && mantissa == 7 ? (double)NAN
                 : exponent == 0                 ? ldexp(mantissa, -9)
                                                 : ldexp(8 + mantissa, exponent - 10);
  return b & 0x80 ? -value : value;
}

/* 1 sign, 5 exponent (bias 15) and 2 mantissa bits, as the upper half of an IEEE binary16. */
static double from_e5m2(unsigned b) {
  int exponent = (int)(b >> 2 & 31), mantissa = (int)(b & 3);
  double value = exponent == 31  ? mantissa ? (double)NAN : (double)INFINITY
                 : exponent == 0 ? ldexp(mantissa, -16)
                                 : ldexp(4 + mantissa, exponent - 17);
  return b & 0x80 ? -value : value;
}

/* To nearest, ties to even, in one step as above. */
static uint16_t to_fp16(double d) {
  uint16_t sign = signbit(d) ? 0x8000 : 0;
  double magnitude = fabs(d);
  int exponent;
  if (isnan(d))
    return sign | 0x7e00;
  if (magnitude >= 65520) /* halfway from the largest number to the next power of two */
    return sign | 0x7c00;
  frexp(magnitude, &exponent);                       /* magnitude < 2^exponent */
  int lowest = exponent < -13 ? -24 : exponent - 11; /* exponent of the last place: subnormals share one */
  double places = ldexp(magnitude, -lowest), whole = floor(places), rest = places - whole;
  unsigned bits = (unsigned)whole;
  if (rest > 0.5 || (rest == 0.5 && bits & 1))
    bits++;
  /* A carry out of the mantissa is one more in the exponent, which is what the addition makes of it. */
  return (uint16_t)(sign | (lowest == -24 ? bits : bits + ((unsigned)(lowest + 24) << 10)));
}

static void decode(sgl_jit_dtype type, double values[256]) {
  for (unsigned b = 0; b < 256; b++)
    values[b] = type == SGL_JIT_DTYPE_FLOAT8_E4M3FN ? from_e4m3(b) : from_e5m2(b);
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
        *output++ = bmm->output_type == SGL_JIT_DTYPE_BFLOAT16 ? to_bf16(sum) : to_fp16(sum);
      }
}
