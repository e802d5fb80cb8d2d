/* The CUDA backend's hot path: context, kernel, launch. */
#include "native.h"
#include <inttypes.h>
#include <limits.h>

/* The first path for so many tokens, else the last one, which then takes more blocks. */
static inline int path_for(const struct jit_plan *plan, int tokens, bool invariant) {
  int path = 0;
  while (path + 1 < plan->path_count &&
         (plan->paths[path].most < tokens || (invariant && !plan->paths[path].invariant)))
    path++;
  return path;
}

/* What is launched, and with which attributes: to overlap with the kernel before, and with weights that leave the
 * second-level cache first, since nobody reads them again soon. */
static CUresult launch_kernel(const struct jit_driver *driver, const struct jit_device *device,
                              const struct jit_kernel *kernel, int index, const struct jit_gemm *gemm, CUstream stream,
                              void **arguments) {
  const struct jit_path *path = &kernel->plan.paths[index];
  unsigned token_blocks = (unsigned)((gemm->tokens + path->tokens - 1) / path->tokens);
  if (!driver->has_libraries)
    return driver->cuLaunchKernel(kernel->functions[index], (unsigned)path->blocks, token_blocks, 1,
                                  (unsigned)path->threads, 1, 1, (unsigned)path->shared, stream, arguments, NULL);
  size_t weight_bytes = (size_t)gemm->n * (size_t)gemm->k * sizeof(uint16_t);
  struct jit_launch_attribute attributes[2];
  struct jit_launch_config config = {.grid = {(unsigned)path->blocks, token_blocks, 1},
                                     .block = {(unsigned)path->threads, 1, 1},
                                     .shared_bytes = (unsigned)path->shared,
                                     .stream = stream,
                                     .attributes = attributes};
  if (device->window_bytes > 0)
    attributes[config.attribute_count++] = (struct jit_launch_attribute){
        .id = JIT_CUDA_LAUNCH_WINDOW,
        .value.window = {.base = gemm->w,
                         .bytes = weight_bytes < device->window_bytes ? weight_bytes : device->window_bytes,
                         .hit_ratio = 1,
                         .hit = JIT_CUDA_ACCESS_STREAMING,
                         .miss = JIT_CUDA_ACCESS_NORMAL}};
  if (kernel->key.pdl)
    attributes[config.attribute_count++] =
        (struct jit_launch_attribute){.id = JIT_CUDA_LAUNCH_PROGRAMMATIC, .value.number = 1};
  return driver->cuLaunchKernelEx(&config, kernel->functions[index], arguments, NULL);
}

static inline sgl_jit_status launched(const struct jit_driver *driver, CUresult error, struct jit_message m) {
  if (error)
    return jit_fail(m, error == JIT_CUDA_OUT_OF_MEMORY ? SGL_JIT_ERROR_OUT_OF_MEMORY : SGL_JIT_ERROR_LAUNCH,
                    "the driver refused the launch, or an earlier error surfaced: %s",
                    jit_driver_error(driver, error).text);
  return SGL_JIT_OK;
}

static sgl_jit_status launch_path(const struct jit_driver *driver, const struct jit_device *device,
                                  const struct jit_kernel *kernel, const struct jit_gemm *gemm, int modes, void *stream,
                                  struct jit_message m) {
  int index = path_for(&kernel->plan, gemm->tokens, modes & JIT_MODE_INVARIANT);
  int token_count = gemm->tokens, block_tokens = kernel->plan.paths[index].tokens;
  void *output = gemm->output;
  const void *a = gemm->a, *w = gemm->w;
  void *arguments[] = {&output, &a, &w, &token_count, &block_tokens};
  return launched(driver, launch_kernel(driver, device, kernel, index, gemm, stream, arguments), m);
}

sgl_jit_status jit_enter(int ordinal, struct jit_place *place, struct jit_message m) {
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

static inline sgl_jit_status find_kernel(const struct jit_place *place, struct jit_kernel_key key, bool asked,
                                         const struct jit_kernel **kernel, struct jit_message m) {
  if (place->driver->has_libraries && jit_has_shape(key.op)) /* cuLaunchKernelEx came with them */
    key.pdl = jit_pdl_on(place->device->major * 10 + place->device->minor);
  if (!place->driver->has_libraries)
    place->driver->cuCtxGetCurrent(&key.context);
  return jit_kernel(place->driver, place->device, &key, asked, kernel, m);
}

sgl_jit_status jit_launch_gemm(const struct jit_gemm *gemm, void *stream, struct jit_message m) {
  struct jit_place place;
  const struct jit_kernel *kernel;
  int modes = jit_modes();
  if (modes & JIT_MODE_INVALID)
    return jit_fail(
        m, SGL_JIT_ERROR_INVALID_ARGUMENT,
        "the environment variables SGL_KERNEL_JIT_BATCH_INVARIANT and SGL_KERNEL_JIT_PDL_PREFETCH must be 0 "
        "or 1");
  sgl_jit_status status = jit_enter(gemm->device, &place, m);
  if (status != SGL_JIT_OK)
    return status;
  struct jit_kernel_key key = {
      .op = gemm->op, .n = gemm->n, .k = gemm->k, .output_f32 = gemm->output_f32, .device = gemm->device};
  status = find_kernel(&place, key, false, &kernel, m);
  if (status == SGL_JIT_OK)
    status = launch_path(place.driver, place.device, kernel, gemm, modes, stream, m);
  jit_context_leave(place.driver, &place.context);
  return status;
}

sgl_jit_status jit_warm_kernel(const sgl_jit_kernel_spec *spec, int device, struct jit_message m) {
  struct jit_place place;
  const struct jit_kernel *kernel;
  sgl_jit_status status = jit_enter(device, &place, m);
  if (status != SGL_JIT_OK)
    return status;
  struct jit_kernel_key key = {.op = (enum jit_op)spec->op,
                               .n = (int)spec->n,
                               .k = (int)spec->k,
                               .output_f32 = spec->output_dtype == SGL_JIT_DTYPE_FLOAT32,
                               .device = device};
  status = find_kernel(&place, key, true, &kernel, m);
  jit_context_leave(place.driver, &place.context);
  return status;
}

/* --- operators with one kernel for every shape --- */

static sgl_jit_status launch_steps(const struct jit_place *place, const struct jit_kernel *kernel,
                                   const struct jit_native *native, const struct jit_call *call, CUstream stream,
                                   struct jit_message m) {
  struct jit_step steps[JIT_MOST_STEPS];
  int count = native->steps(call, steps);
  union jit_kernel_argument argument = call->a;
  void *arguments[] = {&argument};
  for (int i = 0; i < count; i++) {
    const struct jit_path *path = &kernel->plan.paths[steps[i].entry];
    int threads = steps[i].threads ? steps[i].threads : path->threads,
        shared = steps[i].shared ? steps[i].shared : path->shared;
    if (shared > path->shared)
      return jit_fail(m, SGL_JIT_ERROR_UNSUPPORTED,
                      "rows of this size need %d bytes of shared memory, the device gives a block %d", shared,
                      path->shared);
    if (steps[i].blocks > INT_MAX)
      return jit_fail(m, SGL_JIT_ERROR_INVALID_ARGUMENT, "too many rows for one launch: %" PRId64 " blocks",
                      steps[i].blocks);
    CUresult error = place->driver->cuLaunchKernel(kernel->functions[steps[i].entry], (unsigned)steps[i].blocks, 1, 1,
                                                   (unsigned)threads, 1, 1, (unsigned)shared, stream, arguments, NULL);
    if (error)
      return launched(place->driver, error, m);
  }
  return SGL_JIT_OK;
}

sgl_jit_status jit_launch_native(const struct jit_native *native, const struct jit_call *call, void *stream,
                                 struct jit_message m) {
  struct jit_place place;
  const struct jit_kernel *kernel;
  sgl_jit_status status = jit_enter(call->device, &place, m);
  if (status != SGL_JIT_OK)
    return status;
  status = find_kernel(&place, (struct jit_kernel_key){.op = native->op, .device = call->device}, false, &kernel, m);
  if (status == SGL_JIT_OK)
    status = launch_steps(&place, kernel, native, call, stream, m);
  jit_context_leave(place.driver, &place.context);
  return status;
}
