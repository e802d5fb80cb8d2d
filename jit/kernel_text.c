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
TEXT(jit_text_e4m3, "jit/kernels/e4m3.cuh");
TEXT(jit_text_arguments, "jit/kernels/arguments.h");
TEXT(jit_text_elements, "jit/kernels/elements.cuh");
TEXT(jit_text_downcast, "jit/kernels/downcast_fp8.cu");
TEXT(jit_text_quant, "jit/kernels/sgl_per_tensor_quant_fp8.cu");
TEXT(jit_text_merge, "jit/kernels/merge_state.cu");
TEXT(jit_text_hadamard, "jit/kernels/hadamard_transform.cu");
TEXT(jit_text_packbits, "jit/kernels/segment_packbits.cu");
TEXT(jit_text_store, "jit/kernels/set_kv_buffer_kernel.cu");

extern const char jit_text_device[], jit_text_tensor[], jit_text_router[], jit_text_fused_a[], jit_text_e4m3[],
    jit_text_arguments[], jit_text_elements[], jit_text_downcast[], jit_text_quant[], jit_text_merge[],
    jit_text_hadamard[], jit_text_packbits[], jit_text_store[];

static const struct {
  const char *name, *text;
} ops[JIT_OPS] = {
    [JIT_ROUTER] = {"dsv3_router_gemm", jit_text_router},
    [JIT_FUSED_A] = {"dsv3_fused_a_gemm", jit_text_fused_a},
    [JIT_DOWNCAST_FP8] = {"downcast_fp8", jit_text_downcast},
    [JIT_PER_TENSOR_QUANT_FP8] = {"sgl_per_tensor_quant_fp8", jit_text_quant},
    [JIT_MERGE_STATE] = {"merge_state", jit_text_merge},
    [JIT_HADAMARD] = {"hadamard_transform", jit_text_hadamard},
    [JIT_SEGMENT_PACKBITS] = {"segment_packbits", jit_text_packbits},
    [JIT_SET_KV_BUFFER] = {"set_kv_buffer_kernel", jit_text_store},
};

const char *jit_kernel_text(enum jit_op op) {
  return ops[op].text;
}

const char *jit_op_name(enum jit_op op) {
  return ops[op].name;
}

const struct jit_headers *jit_kernel_headers(enum jit_op op) {
  static const struct jit_headers gemm = {2, {"device.cuh", "tensor_gemm.cuh"}, {jit_text_device, jit_text_tensor}},
                                  native = {3,
                                            {"elements.cuh", "e4m3.cuh", "arguments.h"},
                                            {jit_text_elements, jit_text_e4m3, jit_text_arguments}};
  return jit_has_shape(op) ? &gemm : &native;
}
