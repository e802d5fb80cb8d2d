/* The number formats on the CPU. */
#include "native.h"
#include <math.h>
#include <string.h>

/* To nearest, ties to even, in one step: going through float could round a value twice and miss its neighbour. */
uint16_t jit_to_bf16(double d) {
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

/* --- float16 and FP8, by the OCP specification "OFP8" --- */

/* 1 sign, 4 exponent (bias 7) and 3 mantissa bits; no infinity, and one NaN. */
double jit_from_e4m3(unsigned b) {
  int exponent = (int)(b >> 3 & 15), mantissa = (int)(b & 7);
  double value = exponent == 15 && mantissa == 7 ? (double)NAN
                 : exponent == 0                 ? ldexp(mantissa, -9)
                                                 : ldexp(8 + mantissa, exponent - 10);
  return b & 0x80 ? -value : value;
}

/* 1 sign, 5 exponent (bias 15) and 2 mantissa bits, as the upper half of an IEEE binary16. */
double jit_from_e5m2(unsigned b) {
  int exponent = (int)(b >> 2 & 31), mantissa = (int)(b & 3);
  double value = exponent == 31  ? mantissa ? (double)NAN : (double)INFINITY
                 : exponent == 0 ? ldexp(mantissa, -16)
                                 : ldexp(4 + mantissa, exponent - 17);
  return b & 0x80 ? -value : value;
}

/* To nearest, ties to even, in one step as above. */
uint16_t jit_to_fp16(double d) {
  uint16_t sign = signbit(d) ? 0x8000 : 0;
  double magnitude = fabs(d);
  int exponent;
  if (isnan(d))
    return sign | 0x7e00;
  if (magnitude >= 65520) /* halfway from the largest number to the next power of two */
    return sign | 0x7c00;
  if (magnitude == 0)
    return sign;
  frexp(magnitude, &exponent);                       /* magnitude < 2^exponent */
  int lowest = exponent < -13 ? -24 : exponent - 11; /* exponent of the last place: subnormals share one */
  double places = ldexp(magnitude, -lowest), whole = floor(places), rest = places - whole;
  unsigned bits = (unsigned)whole;
  if (rest > 0.5 || (rest == 0.5 && bits & 1))
    bits++;
  /* A carry out of the mantissa is one more in the exponent, which is what the addition makes of it. */
  return (uint16_t)(sign | (lowest == -24 ? bits : bits + ((unsigned)(lowest + 24) << 10)));
}

/* To nearest, ties to even. */
uint8_t jit_to_e4m3(double value) {
  double magnitude = fabs(value);
  uint8_t sign = signbit(value) ? 0x80 : 0;
  int exponent;
  if (isnan(value))
    return 0x7f;
  if (magnitude >= 448)
    return sign | 0x7e;
  if (magnitude == 0)
    return sign;
  frexp(magnitude, &exponent);                    /* magnitude < 2^exponent */
  int lowest = exponent < -5 ? -9 : exponent - 4; /* of the last place, as above */
  double places = ldexp(magnitude, -lowest), whole = floor(places), rest = places - whole;
  unsigned bits = (unsigned)whole;
  if (rest > 0.5 || (rest == 0.5 && bits & 1))
    bits++;
  return (uint8_t)(sign | (lowest == -9 ? bits : bits + ((unsigned)(lowest + 9) << 3)));
}

static double from_fp16(uint16_t b) {
  int exponent = b >> 10 & 31, mantissa = b & 1023;
  double value = exponent == 31  ? mantissa ? (double)NAN : (double)INFINITY
                 : exponent == 0 ? ldexp(mantissa, -24)
                                 : ldexp(1024 + mantissa, exponent - 25);
  return b & 0x8000 ? -value : value;
}

/* --- by dtype --- */

size_t jit_element_size(sgl_jit_dtype dtype) {
  switch (dtype) {
  case SGL_JIT_DTYPE_INT64:
    return 8;
  case SGL_JIT_DTYPE_FLOAT32:
  case SGL_JIT_DTYPE_INT32:
    return 4;
  case SGL_JIT_DTYPE_BFLOAT16:
  case SGL_JIT_DTYPE_FLOAT16:
    return 2;
  case SGL_JIT_DTYPE_FLOAT8_E4M3FN:
  case SGL_JIT_DTYPE_FLOAT8_E5M2:
  case SGL_JIT_DTYPE_UINT8:
  case SGL_JIT_DTYPE_BOOL:
    return 1;
  case SGL_JIT_DTYPE_OTHER:
    break;
  }
  return 0;
}

double jit_number(sgl_jit_dtype dtype, const void *array, int64_t i) {
  if (dtype == SGL_JIT_DTYPE_FLOAT32)
    return (double)((const float *)array)[i];
  uint16_t b = ((const uint16_t *)array)[i];
  return dtype == SGL_JIT_DTYPE_BFLOAT16 ? jit_from_bf16(b) : from_fp16(b);
}

void jit_put_number(sgl_jit_dtype dtype, void *array, int64_t i, double value) {
  if (dtype == SGL_JIT_DTYPE_FLOAT32)
    ((float *)array)[i] = (float)value;
  else
    ((uint16_t *)array)[i] = dtype == SGL_JIT_DTYPE_BFLOAT16 ? jit_to_bf16(value) : jit_to_fp16(value);
}

double jit_rounded(sgl_jit_dtype dtype, double value) {
  union {
    float f;
    uint16_t b;
  } one;
  jit_put_number(dtype, &one, 0, value);
  return jit_number(dtype, &one, 0);
}
