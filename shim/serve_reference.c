/* The kill switch `serve NAME = reference`: a kernel's work in plain C on the CPU, wherever its tensors lie. */
#include "shim/host.h"

bool serve_reference(enum serve_kernel kernel, const sgl_jit_tensor views[], const uint64_t numbers[], void *stream,
                     char *message, size_t message_size) {
  if (views[serve_output(kernel)].device_type != SGL_JIT_DEVICE_CUDA)
    return host_reference(kernel, views, numbers, message, message_size) == SGL_JIT_OK;
  sgl_jit_tensor host[SERVE_TENSORS];
  /* What a compared kernel writes it writes whole. */
  sgl_jit_status status = host_copy(kernel, views, !serve_is_compared(kernel), stream, host, message, message_size);
  if (status == SGL_JIT_OK)
    status = host_reference(kernel, host, numbers, message, message_size);
  for (int i = 0; status == SGL_JIT_OK && i < serve_operands(kernel); i++)
    if (serve_is_output(kernel, i))
      status = sgl_jit_write(&views[i], host[i].data, host_bytes(&views[i]), stream, message, message_size);
  host_free(host);
  return status == SGL_JIT_OK;
}
