/* The kernels' text, put into the library byte for byte, with a NUL behind it. Paths are relative to the root of the
 * repository, where make runs. */
#include "internal.h"

#define TEXT(symbol, path)                                                                                             \
  __asm__(".pushsection .rodata\n"                                                                                     \
          ".global " #symbol "\n"                                                                                      \
          ".hidden " #symbol "\n" #symbol ":\n"                                                                        \
          ".incbin \"" path "\"\n"                                                                                     \
          ".byte 0\n"                                                                                                  \
          ".popsection\n")

TEXT(jit_text_device, "jit/kernels/device.cuh");
TEXT(jit_text_tensor, "jit/kernels/tensor_gemm.cuh");
TEXT(jit_text_router, "jit/kernels/dsv3_router_gemm.cu");
TEXT(jit_text_fused_a, "jit/kernels/dsv3_fused_a_gemm.cu");

const char *jit_kernel_text(enum jit_op op) {
  return op == JIT_ROUTER ? jit_text_router : jit_text_fused_a;
}

const char *jit_op_name(enum jit_op op) {
  return op == JIT_ROUTER ? "dsv3_router_gemm" : "dsv3_fused_a_gemm";
}
