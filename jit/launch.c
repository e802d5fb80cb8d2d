/* The CUDA backend's hot path: context, kernel, launch. */
#include "internal.h"

enum { MIN_MAJOR = 8 }; /* bfloat16 tensor cores and conversions came with compute capability 8.0 */

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

sgl_jit_status jit_launch_gemm(const struct jit_gemm *gemm, void *stream, struct jit_message m) {
  const struct jit_driver *driver;
  sgl_jit_status status = jit_driver(&driver, m);
  if (status != SGL_JIT_OK)
    return status;
  if (gemm->device < 0 || gemm->device >= driver->device_count)
    return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "the tensors are on cuda:%d, but the driver has %d device%s",
                    gemm->device, driver->device_count, driver->device_count == 1 ? "" : "s");
  struct jit_device *device = &driver->devices[gemm->device];
  if (device->major < MIN_MAJOR)
    return jit_fail(m, SGL_JIT_ERROR_UNSUPPORTED, "cuda:%d has compute capability %d.%d, this needs %d.0 or newer",
                    gemm->device, device->major, device->minor, MIN_MAJOR);
  struct jit_context context;
  status = jit_context_enter(driver, device, &context, m);
  if (status != SGL_JIT_OK)
    return status;
  struct jit_kernel_key key = {
      .op = gemm->op, .n = gemm->n, .k = gemm->k, .output_f32 = gemm->output_f32, .device = gemm->device};
  if (!driver->has_libraries)
    driver->cuCtxGetCurrent(&key.context);
  const struct jit_kernel *kernel;
  status = jit_kernel(driver, device, &key, &kernel, m);
  if (status == SGL_JIT_OK)
    status = launch(driver, kernel, gemm, stream, m);
  jit_context_leave(driver, &context);
  return status;
}
