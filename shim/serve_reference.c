/* The kill switch `serve NAME = reference`: a kernel's work in plain C on the CPU, wherever its tensors lie. */
#include "shim/serve.h"
#include "shim/shadow_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies on the host, all but the output's filled. */
static sgl_jit_status copy_in(enum serve_kernel kernel, const sgl_jit_tensor views[], sgl_jit_tensor host[],
                              void *stream, char *message, size_t message_size) {
  sgl_jit_status status = SGL_JIT_OK;
  for (int i = 0; i < shadow_tensors(kernel) && status == SGL_JIT_OK; i++) {
    size_t bytes = shadow_bytes(&views[i]);
    host[i] = views[i];
    host[i].device_type = SGL_JIT_DEVICE_CPU;
    host[i].data = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (!host[i].data) {
      snprintf(message, message_size, "%s: no memory for copies on the host", serve_name(kernel));
      return SGL_JIT_ERROR_OUT_OF_MEMORY;
    }
    if (i != shadow_output(kernel))
      status = sgl_jit_read(&views[i], host[i].data, bytes, stream, message, message_size);
  }
  return status;
}

bool serve_reference(enum serve_kernel kernel, const sgl_jit_tensor views[], void *stream, char *message,
                     size_t message_size) {
  const sgl_jit_tensor *output = &views[shadow_output(kernel)];
  if (output->device_type != SGL_JIT_DEVICE_CUDA)
    return shadow_reference(kernel, views, message, message_size) == SGL_JIT_OK;
  sgl_jit_tensor host[SERVE_TENSORS] = {{0}};
  sgl_jit_status status = copy_in(kernel, views, host, stream, message, message_size);
  if (status == SGL_JIT_OK)
    status = shadow_reference(kernel, host, message, message_size);
  if (status == SGL_JIT_OK)
    status =
        sgl_jit_write(output, host[shadow_output(kernel)].data, shadow_bytes(output), stream, message, message_size);
  for (int i = 0; i < shadow_tensors(kernel); i++)
    free(host[i].data);
  return status == SGL_JIT_OK;
}
