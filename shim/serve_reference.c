/* The kill switch `serve NAME = reference`: a kernel's work in plain C on the CPU, wherever its tensors lie. */
#include "shim/host.h"

bool serve_reference(enum serve_kernel kernel, const sgl_jit_tensor views[], void *stream, char *message,
                     size_t message_size) {
  const sgl_jit_tensor *output = &views[serve_output(kernel)];
  if (output->device_type != SGL_JIT_DEVICE_CUDA)
    return host_reference(kernel, views, message, message_size) == SGL_JIT_OK;
  sgl_jit_tensor host[SERVE_TENSORS];
  sgl_jit_status status = host_copy(kernel, views, false, stream, host, message, message_size);
  if (status == SGL_JIT_OK)
    status = host_reference(kernel, host, message, message_size);
  if (status == SGL_JIT_OK)
    status = sgl_jit_write(output, host[serve_output(kernel)].data, host_bytes(output), stream, message, message_size);
  host_free(host);
  return status == SGL_JIT_OK;
}
