#include "shim/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t host_element_bytes(sgl_jit_dtype dtype) {
  switch (dtype) {
  case SGL_JIT_DTYPE_INT64:
    return 8;
  case SGL_JIT_DTYPE_FLOAT32:
  case SGL_JIT_DTYPE_INT32:
    return 4;
  case SGL_JIT_DTYPE_BFLOAT16:
  case SGL_JIT_DTYPE_FLOAT16:
    return 2;
  default:
    return 1;
  }
}

size_t host_bytes(const sgl_jit_tensor *t) {
  size_t bytes = host_element_bytes(t->dtype);
  for (int d = 0; d < t->ndim; d++)
    bytes *= (size_t)t->sizes[d];
  return bytes;
}

void *host_memory(size_t bytes) {
  return aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
}

sgl_jit_status host_copy(enum serve_kernel kernel, const sgl_jit_tensor views[], bool with_output, void *stream,
                         sgl_jit_tensor host[SERVE_TENSORS], char *message, size_t message_size) {
  sgl_jit_status status = SGL_JIT_OK;
  memset(host, 0, SERVE_TENSORS * sizeof *host);
  for (int i = 0; i < serve_operands(kernel) && status == SGL_JIT_OK; i++) {
    size_t bytes = host_bytes(&views[i]);
    host[i] = views[i];
    host[i].device_type = SGL_JIT_DEVICE_CPU;
    host[i].data = host_memory(bytes);
    if (!host[i].data) {
      snprintf(message, message_size, "%s: no memory for copies on the host", serve_name(kernel));
      return SGL_JIT_ERROR_OUT_OF_MEMORY;
    }
    if (with_output || !serve_is_output(kernel, i))
      status = sgl_jit_read(&views[i], host[i].data, bytes, stream, message, message_size);
  }
  return status;
}

void host_free(const sgl_jit_tensor host[SERVE_TENSORS]) {
  for (int i = 0; i < SERVE_TENSORS; i++)
    free(host[i].data);
}

sgl_jit_status host_reference(enum serve_kernel kernel, const sgl_jit_tensor t[], const uint64_t numbers[],
                              char *message, size_t message_size) {
  switch (kernel) {
  case SERVE_BMM_FP8:
    return sgl_jit_reference_bmm_fp8(&t[2], &t[0], &t[1], &t[3], &t[4], message, message_size);
  case SERVE_DSV3_FUSED_A_GEMM:
    return sgl_jit_reference_dsv3_fused_a_gemm(&t[0], &t[1], &t[2], message, message_size);
  case SERVE_DSV3_ROUTER_GEMM:
    return sgl_jit_reference_dsv3_router_gemm(&t[0], &t[1], &t[2], message, message_size);
  case SERVE_DOWNCAST_FP8:
    return sgl_jit_reference_downcast_fp8(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], (int64_t)numbers[0],
                                          (int64_t)numbers[1], message, message_size);
  case SERVE_HADAMARD_TRANSFORM:
    return sgl_jit_reference_hadamard_transform(&t[0], &t[1], serve_double(numbers[0]), message, message_size);
  case SERVE_MERGE_STATE:
    return sgl_jit_reference_merge_state(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], message, message_size);
  case SERVE_SEGMENT_PACKBITS:
    return sgl_jit_reference_segment_packbits(&t[0], &t[1], &t[2], &t[3], (int64_t)numbers[0], message, message_size);
  case SERVE_SET_KV_BUFFER_KERNEL:
    return sgl_jit_reference_set_kv_buffer_kernel(&t[0], &t[1], &t[2], &t[3], &t[4], message, message_size);
  case SERVE_PER_TENSOR_QUANT_FP8:
    return sgl_jit_reference_sgl_per_tensor_quant_fp8(&t[0], &t[1], &t[2], serve_bool(numbers[0]), message,
                                                      message_size);
  case SERVE_COUNT:
    break;
  }
  return SGL_JIT_ERROR_INTERNAL;
}
