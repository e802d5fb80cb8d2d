/* From torch tensors to a kernel of libsgl_kernel_jit. */
#ifndef SGL_COMPAT_SERVE_H
#define SGL_COMPAT_SERVE_H

#include "shim/torch_abi.h"

#include <sgl_kernel_jit/sgl_kernel_jit.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum serve_kernel {
  SERVE_BMM_FP8,
  SERVE_DOWNCAST_FP8,
  SERVE_DSV3_FUSED_A_GEMM,
  SERVE_DSV3_ROUTER_GEMM,
  SERVE_MERGE_STATE,
  SERVE_PER_TENSOR_QUANT_FP8,
  SERVE_SEGMENT_PACKBITS,
  SERVE_SET_KV_BUFFER_KERNEL,
  SERVE_OPERATORS,
  /* The deleted operator returns a tensor, and so did the C++ function: Python serves the one, nobody the other. */
  SERVE_HADAMARD_TRANSFORM = SERVE_OPERATORS,
  SERVE_COUNT
};

/* The catalog's id of the kernel. */
const char *serve_name(enum serve_kernel kernel);

/* The operators: the deleted one's name, and name and schema of the supported one. */
const char *serve_old_operator(enum serve_kernel kernel);
const char *serve_jit_operator(enum serve_kernel kernel);
const char *serve_jit_schema(enum serve_kernel kernel);

/* Its number in the catalog's table. */
unsigned serve_symbol(enum serve_kernel kernel);

/* How many tensors the operator and the C++ function have, before any other argument; and how many of them the result
 * has to do with, which come first: not the workspace. */
int serve_tensors(enum serve_kernel kernel);
int serve_operands(enum serve_kernel kernel);

/* A bool of those 64 bits: of which torch writes one byte. */
static inline bool serve_bool(uint64_t number) {
  return (number & 0xff) != 0;
}

static inline double serve_double(uint64_t number) {
  double value;
  memcpy(&value, &number, sizeof value);
  return value;
}

/* Has the deleted operator a CUDA stream as its last argument? The supported one runs on torch's current stream. */
bool serve_takes_stream(enum serve_kernel kernel);

/* How many arguments the operator has behind the tensors: ints, bools, floats. In calls they are 64 bits each, as torch
 * has them on its stack. */
int serve_numbers(enum serve_kernel kernel);

/* The tensor's name; which one tells the device and the stream of the call, and which one is written. */
const char *serve_tensor_name(enum serve_kernel kernel, int tensor);
int serve_input(enum serve_kernel kernel);
int serve_output(enum serve_kernel kernel);
/* Is it one of those that are written? Only kernels that write one tensor, whole, are compared with another side. */
bool serve_is_output(enum serve_kernel kernel, int tensor);
bool serve_is_compared(enum serve_kernel kernel);

/* "float8_e4m3fn"; "other" for one that no kernel takes. */
const char *serve_dtype_name(sgl_jit_dtype dtype);

/* What torch says of a tensor; false when it cannot: an undefined, sparse or fake one. The sizes are the tensor's. */
bool serve_view(const struct torch_abi *torch, void *tensor, sgl_jit_tensor *view);

enum {
  SERVE_TENSORS = 7,   /* the most that one has */
  SERVE_NUMBERS = 2,   /* likewise */
  SERVE_MESSAGE = 1024 /* bytes; a longer message is cut */
};

/* Run a kernel on its tensors, in the operator's order, which stay borrowed, on *stream, or where that is NULL on
 * torch's current stream of the first input's device (mat_a, or A). (The old router kernel took the current device's
 * stream instead; the two differ only in calls whose launch the old one got wrong.) bmm_fp8's workspace_buffer has as
 * many bytes as elements, as the deleted kernel counted. False after writing one line into message. */
bool serve_run(const struct torch_abi *torch, enum serve_kernel kernel, void *const tensors[], const uint64_t numbers[],
               void *const *stream, char *message, size_t message_size);

/* serve_reference.c: the same on the CPU reference, with the tensors' views. Waits for the stream; an error while that
 * is being captured, and for tensors on a device that do not lie in one piece. */
bool serve_reference(enum serve_kernel kernel, const sgl_jit_tensor views[], const uint64_t numbers[], void *stream,
                     char *message, size_t message_size);

#endif
