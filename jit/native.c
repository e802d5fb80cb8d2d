/* The way of a call of an operator that has one kernel for every shape: checks, backend, launch or reference. */
#include "native.h"
#include <errno.h>

sgl_jit_status jit_native_run(const struct jit_native *native, bool reference, const sgl_jit_tensor *const t[],
                              const int64_t numbers[], void *stream, char *message, size_t message_size) {
  int saved_errno = errno;
  struct jit_message m = {message, message_size, jit_op_name(native->op)};
  struct jit_call call = {.cuda = false};
  sgl_jit_status status = native->check(t, numbers, &call, m);
  if (status == SGL_JIT_OK)
    status = reference ? jit_check_cpu(call.cuda, call.device, m) : jit_check_backend(call.cuda, call.device, m);
  if (status == SGL_JIT_OK && !call.empty)
    status = call.cuda ? jit_launch_native(native, &call, stream, m) : native->reference(&call, m);
  errno = saved_errno;
  return status;
}
