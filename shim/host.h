/* Tensors in host memory, and the reference on them. Views are in the operator's order. */
#ifndef SGL_COMPAT_HOST_H
#define SGL_COMPAT_HOST_H

#include "shim/serve.h"

/* Of an element, and of a whole tensor. */
size_t host_element_bytes(sgl_jit_dtype dtype);
size_t host_bytes(const sgl_jit_tensor *t);

/* Memory for a tensor, at a multiple of what the kernels ask for; to be freed. */
void *host_memory(size_t bytes);

/* Views of copies of the operands; the outputs' elements are copied if asked for. Waits for the stream. On an error,
 * which message tells, as much as is there; free with host_free in either case. */
sgl_jit_status host_copy(enum serve_kernel kernel, const sgl_jit_tensor views[], bool with_output, void *stream,
                         sgl_jit_tensor host[SERVE_TENSORS], char *message, size_t message_size);
void host_free(const sgl_jit_tensor host[SERVE_TENSORS]);

/* The kernel's work in plain C on operands in host memory. */
sgl_jit_status host_reference(enum serve_kernel kernel, const sgl_jit_tensor t[], const uint64_t numbers[],
                              char *message, size_t message_size);

#endif
