// float8_e4m3fn, for devices without an instruction for it: to nearest, ties to even.

INLINE unsigned e4m3(float f) {
  const unsigned all = __float_as_uint(f), sign = all >> 24 & 0x80, size = all & 0x7fffffffu;
  if (size > 0x7f800000u) // a NaN
    return 0x7f;
  if (size >= 0x43e00000u) // 448
    return sign | 0x7e;
  if (size < 0x3c800000u) // 2^-6: below it are multiples of 2^-9, to which adding 2^14 rounds
    return sign | (__float_as_uint(__uint_as_float(size) + 16384.0f) & 0xf);
  return sign | (((size + 0x7ffffu + (size >> 20 & 1)) >> 20) - (120u << 3)); // the exponents' biases are 127 and 7
}

INLINE unsigned e4m3_pair(float low, float high) {
  return e4m3(low) | e4m3(high) << 8;
}
