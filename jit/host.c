/* A tensor's elements to and from host memory, and the reference by its own name: the other side of a comparison. */
#include "internal.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { MOST_DIMENSIONS = 64 }; /* as many as torch has */

/* Whether the elements lie in one piece, in whatever order of the dimensions: each stride, smallest first, is the
 * product of the sizes before it. Strides of dimensions of size 1 are free. */
static bool is_packed(const sgl_jit_tensor *t, int64_t count) {
  bool done[MOST_DIMENSIONS] = {false};
  int64_t step = 1;
  while (step < count) {
    int next = -1;
    for (int d = 0; d < t->ndim && next < 0; d++)
      if (!done[d] && t->sizes[d] != 1 && t->strides[d] == step)
        next = d;
    if (next < 0)
      return false;
    done[next] = true;
    step *= t->sizes[next];
  }
  return true;
}

static sgl_jit_status bytes_of(const sgl_jit_tensor *t, size_t *bytes, struct jit_message m) {
  if (!t)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "tensor is NULL");
  if (t->ndim < 0 || t->ndim > MOST_DIMENSIONS || (t->ndim > 0 && (!t->sizes || !t->strides)))
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "tensor has %d dimensions, or no sizes or strides",
                    (int)t->ndim);
  size_t size = jit_element_size(t->dtype);
  if (!size)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "tensor has %s", jit_dtype_name(t->dtype));
  int64_t count = 1;
  for (int d = 0; d < t->ndim; d++)
    if (t->sizes[d] < 0 || __builtin_mul_overflow(count, t->sizes[d], &count) || count > INT64_MAX / (int64_t)size)
      return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "tensor's size %d is %" PRId64 ", no memory has that", d,
                      t->sizes[d]);
  if (count > 0 && !t->data)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "tensor has no data (NULL)");
  if (!is_packed(t, count))
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "tensor's elements do not lie in one piece");
  *bytes = (size_t)count * size;
  return SGL_JIT_OK;
}

static sgl_jit_status copied(const struct jit_place *place, CUresult error, struct jit_message m) {
  if (!error)
    return SGL_JIT_OK;
  return jit_fail(m, jit_is_capture_error(error) ? SGL_JIT_ERROR_CAPTURE : SGL_JIT_ERROR_LAUNCH,
                  "the driver refused the copy, or an earlier error surfaced: %s",
                  jit_driver_error(place->driver, error).text);
}

/* Between the device and the host, and waits until it is done. A capture of this stream would be lost by the wait, so
 * it is asked for first; one of another thread, in the global mode, is not disturbed where this thread's is relaxed. */
static sgl_jit_status copy(const struct jit_place *place, uint64_t device, void *host, size_t bytes, bool to_host,
                           CUstream stream, struct jit_message m) {
  const struct jit_driver *driver = place->driver;
  int capturing = 0, mode = JIT_CUDA_CAPTURE_MODE_RELAXED;
  CUresult error = driver->cuStreamIsCapturing(stream, &capturing);
  if (!error && capturing)
    return jit_fail(m, SGL_JIT_ERROR_CAPTURE, "the stream is being captured, and a copy has to be waited for");
  if (error)
    return copied(place, error, m);
  error = driver->cuThreadExchangeStreamCaptureMode(&mode);
  if (error)
    return copied(place, error, m);
  error = to_host ? driver->cuMemcpyDtoHAsync(host, device, bytes, stream)
                  : driver->cuMemcpyHtoDAsync(device, host, bytes, stream);
  if (!error)
    error = driver->cuStreamSynchronize(stream);
  driver->cuThreadExchangeStreamCaptureMode(&mode);
  return copied(place, error, m);
}

static sgl_jit_status transfer_checked(const sgl_jit_tensor *t, void *host, size_t size, bool to_host, void *stream,
                                       struct jit_message m) {
  size_t bytes = 0;
  sgl_jit_status status = bytes_of(t, &bytes, m);
  if (status != SGL_JIT_OK)
    return status;
  if (bytes != size)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "the tensor has %zu bytes, not %zu", bytes, size);
  if (bytes == 0)
    return SGL_JIT_OK;
  if (!host)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "data is NULL");
  if (t->device_type == SGL_JIT_DEVICE_CPU) {
    memcpy(to_host ? host : t->data, to_host ? t->data : host, bytes);
    return SGL_JIT_OK;
  }
  if (t->device_type != SGL_JIT_DEVICE_CUDA)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "tensor must be on the CPU or on a CUDA device");
  struct jit_place place;
  status = jit_enter(t->device_index, &place, m);
  if (status != SGL_JIT_OK)
    return status;
  status = copy(&place, (uint64_t)(uintptr_t)t->data, host, bytes, to_host, stream, m);
  jit_context_leave(place.driver, &place.context);
  return status;
}

static sgl_jit_status transfer(const sgl_jit_tensor *t, void *host, size_t size, bool to_host, void *stream,
                               struct jit_message m) {
  int saved_errno = errno;
  sgl_jit_status status = transfer_checked(t, host, size, to_host, stream, m);
  errno = saved_errno;
  return status;
}

sgl_jit_status sgl_jit_read(const sgl_jit_tensor *tensor, void *data, size_t size, void *stream, char *message,
                            size_t message_size) {
  return transfer(tensor, data, size, true, stream, (struct jit_message){message, message_size, "sgl_jit_read"});
}

sgl_jit_status sgl_jit_write(const sgl_jit_tensor *tensor, const void *data, size_t size, void *stream, char *message,
                             size_t message_size) {
  return transfer(tensor, (void *)(uintptr_t)data, size, false, stream,
                  (struct jit_message){message, message_size, "sgl_jit_write"});
}

/* --- the reference ------------------------------------------------------------------------------------------------ */

sgl_jit_status jit_check_cpu(bool cuda, int device, struct jit_message m) {
  return cuda ? jit_fail(m, SGL_JIT_ERROR_UNSUPPORTED,
                         "the reference computes CPU tensors only, got tensors on cuda:%d", device)
              : SGL_JIT_OK;
}

typedef sgl_jit_status check_gemm(const sgl_jit_tensor *output, const sgl_jit_tensor *a, const sgl_jit_tensor *w,
                                  struct jit_gemm *gemm, struct jit_message m);

static sgl_jit_status reference_gemm(check_gemm *check, const sgl_jit_tensor *output, const sgl_jit_tensor *a,
                                     const sgl_jit_tensor *w, struct jit_message m) {
  struct jit_gemm gemm;
  sgl_jit_status status = check(output, a, w, &gemm, m);
  if (status == SGL_JIT_OK)
    status = jit_check_cpu(gemm.cuda, gemm.device, m);
  if (status == SGL_JIT_OK)
    jit_reference_gemm(&gemm);
  return status;
}

sgl_jit_status sgl_jit_reference_dsv3_router_gemm(const sgl_jit_tensor *output, const sgl_jit_tensor *hidden_states,
                                                  const sgl_jit_tensor *router_weights, char *message,
                                                  size_t message_size) {
  return reference_gemm(jit_check_router, output, hidden_states, router_weights,
                        (struct jit_message){message, message_size, "dsv3_router_gemm"});
}

sgl_jit_status sgl_jit_reference_dsv3_fused_a_gemm(const sgl_jit_tensor *output, const sgl_jit_tensor *mat_a,
                                                   const sgl_jit_tensor *mat_b, char *message, size_t message_size) {
  return reference_gemm(jit_check_fused_a, output, mat_a, mat_b,
                        (struct jit_message){message, message_size, "dsv3_fused_a_gemm"});
}

sgl_jit_status sgl_jit_reference_bmm_fp8(const sgl_jit_tensor *output, const sgl_jit_tensor *A, const sgl_jit_tensor *B,
                                         const sgl_jit_tensor *A_scale, const sgl_jit_tensor *B_scale, char *message,
                                         size_t message_size) {
  struct jit_message m = {message, message_size, "bmm_fp8"};
  struct jit_bmm bmm;
  sgl_jit_status status = jit_check_bmm(output, A, B, A_scale, B_scale, NULL, 0, &bmm, m);
  if (status == SGL_JIT_OK)
    status = jit_check_cpu(bmm.cuda, bmm.device, m);
  if (status == SGL_JIT_OK)
    jit_reference_bmm(&bmm);
  return status;
}
