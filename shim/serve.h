/* From torch tensors to a kernel of libsgl_kernel_jit. */
#ifndef SGL_COMPAT_SERVE_H
#define SGL_COMPAT_SERVE_H

#include "shim/torch_abi.h"

#include <stdbool.h>
#include <stddef.h>

enum serve_kernel { SERVE_DSV3_FUSED_A_GEMM, SERVE_DSV3_ROUTER_GEMM, SERVE_COUNT };

/* The catalog's id of the kernel: also the name of its operator and of its C++ function. */
const char *serve_name(enum serve_kernel kernel);

enum { SERVE_MESSAGE = 1024 }; /* bytes; a longer message is cut */

/* Run a kernel on tensors {output, mat_a, mat_b}, which stay borrowed, on torch's current stream of mat_a's device.
 * (The old router kernel took the current device's stream instead; the two differ only in calls whose launch the old
 * one got wrong.) False after writing one line into message. */
bool serve_run(const struct torch_abi *torch, enum serve_kernel kernel, void *const tensors[3], char *message,
               size_t message_size);

#endif
