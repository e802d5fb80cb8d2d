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

#endif
