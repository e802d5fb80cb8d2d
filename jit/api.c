/* The public operators and the choice of the backend. */
#include "internal.h"
#include <errno.h>
#include <stdatomic.h>

static atomic_int backend = JIT_SETTING_UNREAD;

static int read_backend(void) {
  static const char *const names[] = {[SGL_JIT_BACKEND_AUTO] = "auto", [SGL_JIT_BACKEND_REFERENCE] = "reference"};
  int value = atomic_load_explicit(&backend, memory_order_relaxed);
  return value != JIT_SETTING_UNREAD
             ? value
             : jit_setting_first(&backend, "SGL_KERNEL_JIT_BACKEND", names, 2, SGL_JIT_BACKEND_AUTO);
}

sgl_jit_status sgl_jit_set_backend(sgl_jit_backend wanted, char *message, size_t message_size) {
  struct jit_message m = {message, message_size, "sgl_jit_set_backend"};
  if (wanted != SGL_JIT_BACKEND_AUTO && wanted != SGL_JIT_BACKEND_REFERENCE)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "there is no backend %d", (int)wanted);
  atomic_store(&backend, (int)wanted);
  return SGL_JIT_OK;
}

sgl_jit_backend sgl_jit_get_backend(void) {
  return read_backend() == SGL_JIT_BACKEND_REFERENCE ? SGL_JIT_BACKEND_REFERENCE : SGL_JIT_BACKEND_AUTO;
}

sgl_jit_status jit_check_backend(bool cuda, int device, struct jit_message m) {
  int chosen = read_backend();
  if (chosen == JIT_SETTING_INVALID)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT,
                    "the environment variable SGL_KERNEL_JIT_BACKEND must be auto or reference");
  if (chosen == SGL_JIT_BACKEND_REFERENCE && cuda)
    return jit_fail(m, SGL_JIT_ERROR_UNSUPPORTED,
                    "the reference backend computes CPU tensors only, got tensors on cuda:%d", device);
  if (chosen == SGL_JIT_BACKEND_AUTO && !cuda)
    return jit_fail(m, SGL_JIT_ERROR_UNSUPPORTED,
                    "the tensors must be on a CUDA device, got CPU tensors (for tests, "
                    "SGL_KERNEL_JIT_BACKEND=reference computes them)");
  return SGL_JIT_OK;
}

static sgl_jit_status compute(const struct jit_gemm *gemm, void *stream, struct jit_message m) {
  sgl_jit_status status = jit_check_backend(gemm->cuda, gemm->device, m);
  if (status != SGL_JIT_OK || gemm->tokens == 0)
    return status;
  if (gemm->cuda)
    return jit_launch_gemm(gemm, stream, m);
  jit_reference_gemm(gemm);
  return SGL_JIT_OK;
}

static sgl_jit_status compute_bmm(const struct jit_bmm *bmm, void *stream, struct jit_message m) {
  sgl_jit_status status = jit_check_backend(bmm->cuda, bmm->device, m);
  if (status != SGL_JIT_OK || bmm->batch == 0 || bmm->m == 0)
    return status;
  if (bmm->cuda)
    return jit_launch_bmm(bmm, stream, m);
  jit_reference_bmm(bmm);
  return SGL_JIT_OK;
}

sgl_jit_status sgl_jit_dsv3_router_gemm(const sgl_jit_tensor *output, const sgl_jit_tensor *hidden_states,
                                        const sgl_jit_tensor *router_weights, void *stream, char *message,
                                        size_t message_size) {
  int saved_errno = errno;
  struct jit_message m = {message, message_size, "dsv3_router_gemm"};
  struct jit_gemm gemm;
  sgl_jit_status status = jit_check_router(output, hidden_states, router_weights, &gemm, m);
  if (status == SGL_JIT_OK)
    status = compute(&gemm, stream, m);
  errno = saved_errno;
  return status;
}

sgl_jit_status sgl_jit_dsv3_fused_a_gemm(const sgl_jit_tensor *output, const sgl_jit_tensor *mat_a,
                                         const sgl_jit_tensor *mat_b, void *stream, char *message,
                                         size_t message_size) {
  int saved_errno = errno;
  struct jit_message m = {message, message_size, "dsv3_fused_a_gemm"};
  struct jit_gemm gemm;
  sgl_jit_status status = jit_check_fused_a(output, mat_a, mat_b, &gemm, m);
  if (status == SGL_JIT_OK)
    status = compute(&gemm, stream, m);
  errno = saved_errno;
  return status;
}

sgl_jit_status sgl_jit_bmm_fp8(const sgl_jit_tensor *output, const sgl_jit_tensor *A, const sgl_jit_tensor *B,
                               const sgl_jit_tensor *A_scale, const sgl_jit_tensor *B_scale, void *workspace,
                               size_t workspace_size, void *stream, char *message, size_t message_size) {
  int saved_errno = errno;
  struct jit_message m = {message, message_size, "bmm_fp8"};
  struct jit_bmm bmm;
  sgl_jit_status status = jit_check_bmm(output, A, B, A_scale, B_scale, workspace, workspace_size, &bmm, m);
  if (status == SGL_JIT_OK)
    status = compute_bmm(&bmm, stream, m);
  errno = saved_errno;
  return status;
}
