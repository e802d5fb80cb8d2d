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
