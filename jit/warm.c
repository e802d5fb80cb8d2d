/* The public functions that get kernels ready ahead of their first use. */
#include "internal.h"
#include <errno.h>
#include <stdio.h>

sgl_jit_status sgl_jit_warm(const sgl_jit_kernel_spec *spec, int device_index, char *message, size_t message_size) {
  int saved_errno = errno;
  struct jit_message m = {message, message_size, "sgl_jit_warm"};
  sgl_jit_status status = jit_check_spec(spec, m);
  if (status == SGL_JIT_OK)
    status = jit_warm_kernel(spec, device_index, m);
  errno = saved_errno;
  return status;
}

static sgl_jit_status compile_for(const sgl_jit_kernel_spec *spec, const char *name, struct jit_message m) {
  struct jit_target target;
  int major, minor;
  sgl_jit_status status = jit_check_spec(spec, m);
  if (status != SGL_JIT_OK)
    return status;
  if (!name || !jit_target_parse(name, &major, &minor) || major < JIT_MIN_MAJOR)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                    "target must be one that devices look for, such as sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_103a "
                    "or sm_120a, got %.40s",
                    name ? name : "NULL");
  snprintf(target.name, sizeof target.name, "%s", name);
  return jit_kernel_to_cache(spec, &target, m);
}

sgl_jit_status sgl_jit_compile(const sgl_jit_kernel_spec *spec, const char *target, char *message,
                               size_t message_size) {
  int saved_errno = errno;
  sgl_jit_status status = compile_for(spec, target, (struct jit_message){message, message_size, "sgl_jit_compile"});
  errno = saved_errno;
  return status;
}
