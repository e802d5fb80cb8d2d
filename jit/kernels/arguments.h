/* What the kernels that serve every shape get: one struct each, by value. Read by the C compiler and by NVRTC, which
 * has no <stdint.h>: an int has 32 bits and a long long has 64 in both. Names of types begin with the kernel's. */
#ifndef SGL_JIT_KERNEL_ARGUMENTS_H
#define SGL_JIT_KERNEL_ARGUMENTS_H

/* Rows of k and v, tokens of them, go to slots of the outputs: token t to slot loc[t] * mult + offset. */
struct downcast_fp8 {
  const void *k, *v;   /* [tokens][row] */
  void *k_out, *v_out; /* [slots][row] */
  const float *k_scale, *v_scale;
  const long long *loc;
  long long tokens, row, slots, mult, offset;
};

struct per_tensor_quant {
  const void *input;
  void *output;
  float *scale;
  long long count;
};

/* Two partial results of attention, rows of values with a logarithm (of base 2) of a sum of exponentials each. */
struct merge_state {
  const void *v_a, *v_b;  /* [rows][width] */
  const float *s_a, *s_b; /* [rows] */
  void *v;                /* [rows][width] */
  float *s;               /* [rows] */
  long long rows, width;
  int lanes; /* of a row, a power of two up to 32 */
};

/* Rows, of which columns are transformed as if zeros came behind them up to 1 << log_size. */
struct hadamard {
  const void *input; /* [rows][columns], rows `pitch` elements apart */
  void *output;      /* [rows][columns] */
  long long rows, pitch, columns;
  float scale;
  int log_size, rows_of_block, is_whole; /* rows are read in pieces of 8 */
};

struct packbits {
  const unsigned char *x;
  unsigned char *y;
  const int *from, *to; /* [segments + 1]: where a segment begins in x and in y */
  long long x_size, y_size;
  int segments, blocks_of_segment;
};

/* Rows of k and v, row_bytes each, are copied to slots of the caches; all distances in bytes. */
struct store_kv {
  const void *k, *v;
  void *k_cache, *v_cache;
  const void *loc; /* of one int or long long each */
  long long tokens, slots, row_bytes, pitch, cache_pitch;
  int is_wide; /* loc */
};

#endif
