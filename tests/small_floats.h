/* Floating-point numbers of 8 and 16 bits, by their definition: for tests, so simple rather than fast. */
#ifndef SGL_TESTS_SMALL_FLOATS_H
#define SGL_TESTS_SMALL_FLOATS_H

#include <math.h>
#include <stdint.h>

struct small_float {
  int exponent_bits, mantissa_bits;
  int special; /* the highest exponent has infinity and NaNs; else only its highest mantissa is one: NaN */
};
static const struct small_float small_e4m3 = {4, 3, 0}, small_e5m2 = {5, 2, 1}, small_fp16 = {5, 10, 1},
                                small_bf16 = {8, 7, 1};

__attribute__((unused)) static double small_value(struct small_float f, unsigned bits) {
  int most = (1 << f.exponent_bits) - 1, bias = most / 2;
  int exponent = (int)(bits >> f.mantissa_bits) & most, mantissa = (int)bits & ((1 << f.mantissa_bits) - 1);
  double sign = bits >> (f.exponent_bits + f.mantissa_bits) & 1 ? -1.0 : 1.0;
  if (exponent == most && f.special)
    return mantissa ? (double)NAN : sign * (double)INFINITY;
  if (exponent == most && mantissa == (1 << f.mantissa_bits) - 1)
    return (double)NAN;
  double fraction = (double)mantissa / (1 << f.mantissa_bits);
  return sign * ldexp(exponent ? 1 + fraction : fraction, exponent ? exponent - bias : 1 - bias);
}

/* The nearest one, ties to even, of a format with infinity; found among all of them, which rise with their bits. */
__attribute__((unused)) static uint16_t small_nearest(struct small_float f, double value) {
  unsigned sign = signbit(value) ? 1u << (f.exponent_bits + f.mantissa_bits) : 0;
  unsigned low = 0, infinity = ((1u << f.exponent_bits) - 1) << f.mantissa_bits, high = infinity;
  double magnitude = fabs(value);
  if (isnan(value))
    return (uint16_t)(sign | infinity | 1u << (f.mantissa_bits - 1));
  if (isinf(value))
    return (uint16_t)(sign | infinity);
  while (low + 1 < high) {
    unsigned middle = (low + high) / 2;
    *(small_value(f, middle) <= magnitude ? &low : &high) = middle;
  }
  double below = small_value(f, low);
  /* Infinity counts as the number that would come next. */
  double above = high == infinity ? ldexp(1, 1 << (f.exponent_bits - 1)) : small_value(f, high);
  int up = magnitude - below > above - magnitude || (magnitude - below == above - magnitude && low & 1);
  return (uint16_t)(sign | (up ? high : low));
}

#endif
