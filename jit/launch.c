/* The CUDA backend's hot path: context, kernel, launch. */
#include "internal.h"

static sgl_jit_status launch(const struct jit_driver *driver, const struct jit_kernel *kernel,
                             const struct jit_gemm *gemm, void *stream, struct jit_message m) {
  const struct jit_plan *plan = &kernel->plan;
  int path = 0;
  while (path + 1 < kernel->function_count && plan->paths[path].tokens < gemm->tokens)
    path++;
  int tokens = plan->paths[path].tokens;
  int token_count = gemm->tokens;
  void *output = gemm->output;
  const void *a = gemm->a, *w = gemm->w;
  void *arguments[] = {&output, &a, &w, &token_count};
  CUresult error = driver->cuLaunchKernel(
      kernel->functions[path], (unsigned)(gemm->n / plan->columns), (unsigned)((token_count + tokens - 1) / tokens), 1,
      (unsigned)plan->warps * 32, 1, 1, (unsigned)jit_plan_shared(plan, path), stream, arguments, NULL);
  if (error)
    return jit_fail(m, error == JIT_CUDA_OUT_OF_MEMORY ? SGL_JIT_ERROR_OUT_OF_MEMORY : SGL_JIT_ERROR_LAUNCH,
                    "the driver refused the launch, or an earlier error surfaced: %s",
                    jit_driver_error(driver, error).text);
  return SGL_JIT_OK;
}

/* What a call needs: the driver, the device, and a context of it, which the caller has to leave. */
struct place {
  const struct jit_driver *driver;
  struct jit_device *device;
  struct jit_context context;
};

static inline sgl_jit_status enter(int ordinal, struct place *place, struct jit_message m) {
  sgl_jit_status status = jit_driver(&place->driver, m);
  if (status != SGL_JIT_OK)
    return status;
  if (ordinal < 0 || ordinal >= place->driver->device_count)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "there is no cuda:%d, the driver has %d device%s", ordinal,
                    place->driver->device_count, place->driver->device_count == 1 ? "" : "s");
  place->device = &place->driver->devices[ordinal];
  if (place->device->major < JIT_MIN_MAJOR)
    return jit_fail(m, SGL_JIT_ERROR_UNSUPPORTED, "cuda:%d has compute capability %d.%d, this needs %d.0 or newer",
                    ordinal, place->device->major, place->device->minor, JIT_MIN_MAJOR);
  return jit_context_enter(place->driver, place->device, &place->context, m);
}

static inline sgl_jit_status find_kernel(const struct place *place, const struct jit_gemm *gemm, bool asked,
                                         const struct jit_kernel **kernel, struct jit_message m) {
  struct jit_kernel_key key = {
      .op = gemm->op, .n = gemm->n, .k = gemm->k, .output_f32 = gemm->output_f32, .device = gemm->device};
  if (!place->driver->has_libraries)
    place->driver->cuCtxGetCurrent(&key.context);
  return jit_kernel(place->driver, place->device, &key, asked, kernel, m);
}

sgl_jit_status jit_launch_gemm(const struct jit_gemm *gemm, void *stream, struct jit_message m) {
  struct place place;
  const struct jit_kernel *kernel;
  sgl_jit_status status = enter(gemm->device, &place, m);
  if (status != SGL_JIT_OK)
    return status;
  status = find_kernel(&place, gemm, false, &kernel, m);
  if (status == SGL_JIT_OK)
    status = launch(place.driver, kernel, gemm, stream, m);
  jit_context_leave(place.driver, &place.context);
  return status;
}

sgl_jit_status jit_warm_gemm(const struct jit_gemm *gemm, struct jit_message m) {
  struct place place;
  const struct jit_kernel *kernel;
  sgl_jit_status status = enter(gemm->device, &place, m);
  if (status != SGL_JIT_OK)
    return status;
  status = find_kernel(&place, gemm, true, &kernel, m);
  jit_context_leave(place.driver, &place.context);
  return status;
}
