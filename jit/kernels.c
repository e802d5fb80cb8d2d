/* Loaded kernels: found without a lock, made under one. */
#include "internal.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
  BUCKETS = 64,
  CACHE_ABI = 1,                     /* of the kernels' parameters: another one needs other entries in the cache */
  SHARED_WITHOUT_ASKING = 48 * 1024, /* bytes a block may have on every device */
};

/* A list for each hash value. Kernels are put in front, whole, and never removed. */
static _Atomic(struct jit_kernel *) buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool same_key(const struct jit_kernel_key *a, const struct jit_kernel_key *b) {
  return a->n == b->n && a->k == b->k && a->op == b->op && a->output_f32 == b->output_f32 && a->device == b->device &&
         a->context == b->context;
}

static _Atomic(struct jit_kernel *) *bucket_of(const struct jit_kernel_key *key) {
  uint64_t hash = (uint64_t)key->n * 0x9e3779b97f4a7c15u + (uint64_t)key->k * 0xc2b2ae3d27d4eb4fu +
                  (uint64_t)key->op * 2 + key->output_f32 + (uint64_t)key->device * 4 + (uintptr_t)key->context / 64;
  return &buckets[(hash ^ hash >> 32) % BUCKETS];
}

static struct jit_kernel *find(const struct jit_kernel_key *key) {
  struct jit_kernel *kernel = atomic_load_explicit(bucket_of(key), memory_order_acquire);
  while (kernel && !same_key(&kernel->key, key))
    kernel = kernel->next;
  return kernel;
}

/* --- loading --- */

/* A library where the driver has them, which serves every context; else a module of the current context. */
struct code {
  CUlibrary library;
  CUmodule module;
};

static void unload(const struct jit_driver *driver, const struct code *code) {
  if (code->library)
    driver->cuLibraryUnload(code->library);
  if (code->module)
    driver->cuModuleUnload(code->module);
}

static CUresult load_code(const struct jit_driver *driver, const void *image, struct code *code) {
  return driver->has_libraries ? driver->cuLibraryLoadData(&code->library, image, NULL, NULL, 0, NULL, NULL, 0)
                               : driver->cuModuleLoadData(&code->module, image);
}

static CUresult load_function(const struct jit_driver *driver, const struct jit_device *device, const struct code *code,
                              const char *entry, int shared, CUfunction *function) {
  CUfunction loaded;
  CUresult error;
  if (!code->library) {
    error = driver->cuModuleGetFunction(function, code->module, entry);
    if (!error && shared > SHARED_WITHOUT_ASKING)
      error = driver->cuFuncSetAttribute(*function, JIT_CUDA_FUNCTION_DYNAMIC_SHARED, shared);
    return error;
  }
  error = driver->cuLibraryGetKernel(function, code->library, entry);
  if (!error) /* loads it here and now, whatever CUDA_MODULE_LOADING says: a launch in a capture must not have to */
    error = driver->cuKernelGetFunction(&loaded, *function);
  if (!error && shared > SHARED_WITHOUT_ASKING)
    error = driver->cuKernelSetAttribute(JIT_CUDA_FUNCTION_DYNAMIC_SHARED, shared, *function, device->handle);
  return error;
}

static CUresult load_all(const struct jit_driver *driver, const struct jit_device *device, const void *image,
                         struct jit_kernel *kernel) {
  struct code code = {NULL, NULL};
  CUresult error = load_code(driver, image, &code);
  kernel->function_count = 0;
  for (int i = 0; !error && i < kernel->plan.path_count; i++) {
    int shared = jit_plan_shared(&kernel->plan, i);
    if (shared > device->shared_bytes)
      break;
    error = load_function(driver, device, &code, kernel->plan.paths[i].entry, shared, &kernel->functions[i]);
    kernel->function_count += !error;
  }
  if (error || kernel->function_count == 0)
    unload(driver, &code);
  return error;
}

static sgl_jit_status load(const struct jit_driver *driver, const struct jit_device *device,
                           const struct jit_image *image, struct jit_kernel *kernel, struct jit_message m) {
  /* Loading is unsafe, in CUDA's terms, while another stream of the process captures in the strict modes. */
  int mode = JIT_CUDA_CAPTURE_MODE_RELAXED;
  CUresult exchanged = driver->cuThreadExchangeStreamCaptureMode(&mode);
  CUresult error = load_all(driver, device, image->data, kernel);
  kernel->unfit = error == JIT_CUDA_INVALID_IMAGE || error == JIT_CUDA_NO_BINARY_FOR_GPU ||
                  error == JIT_CUDA_INVALID_PTX || error == JIT_CUDA_UNSUPPORTED_PTX_VERSION;
  if (!exchanged)
    driver->cuThreadExchangeStreamCaptureMode(&mode);
  if (error >= JIT_CUDA_CAPTURE_FIRST && error <= JIT_CUDA_CAPTURE_LAST)
    return jit_fail(m, SGL_JIT_ERROR_CAPTURE,
                    "the first use of this shape came during a stream capture, where this driver loads no code (%s); "
                    "call it once with this shape before the capture",
                    jit_driver_error(driver, error).text);
  if (error >= JIT_CUDA_EXECUTION_FIRST && error <= JIT_CUDA_EXECUTION_LAST)
    return jit_fail(m, SGL_JIT_ERROR_LAUNCH, "an earlier error surfaced as the kernel was loaded: %s",
                    jit_driver_error(driver, error).text);
  if (error)
    return jit_fail(m, error == JIT_CUDA_OUT_OF_MEMORY ? SGL_JIT_ERROR_OUT_OF_MEMORY : SGL_JIT_ERROR_LOAD,
                    "the driver refused the compiled kernel: %s", jit_driver_error(driver, error).text);
  if (kernel->function_count == 0)
    return jit_fail(m, SGL_JIT_ERROR_UNSUPPORTED, "a block needs %d bytes of shared memory, the device has %d",
                    jit_plan_shared(&kernel->plan, 0), device->shared_bytes);
  return SGL_JIT_OK;
}

/* --- making --- */

/* All that the compiled kernel depends on. Not the compiler's version: see jit_cache_read. */
static void cache_key(const struct jit_kernel *kernel, const struct jit_target *target, char *text, size_t size) {
  const char *own = jit_kernel_text(kernel->key.op);
  XXH128_hash_t device_hash = XXH3_128bits(jit_text_device, strlen(jit_text_device));
  XXH128_hash_t own_hash = XXH3_128bits(own, strlen(own));
  int length = snprintf(text, size, "abi %d\nop %s\ntext %016llx%016llx %016llx%016llx\ntarget %s\noptions", CACHE_ABI,
                        jit_op_name(kernel->key.op), (unsigned long long)device_hash.high64,
                        (unsigned long long)device_hash.low64, (unsigned long long)own_hash.high64,
                        (unsigned long long)own_hash.low64, target->name);
  for (int i = 0; i < kernel->plan.option_count; i++)
    length += snprintf(text + length, size - (size_t)length, " %s", kernel->plan.options[i]);
  snprintf(text + length, size - (size_t)length, "\n");
}

/* False when there is no entry, or one that the driver does not take, as after a change of drivers: it is then compiled
 * anew, and replaced if that helps. */
static bool load_cached(const struct jit_driver *driver, const struct jit_device *device, const char *key,
                        struct jit_kernel *kernel, sgl_jit_status *status, struct jit_message m) {
  struct jit_image image;
  if (!jit_cache_read(jit_op_name(kernel->key.op), key, &image))
    return false;
  *status = load(driver, device, &image, kernel, m);
  free(image.data);
  return *status != SGL_JIT_ERROR_LOAD;
}

/* The compiler is opened only after a look for the device's own target in the cache: opening it takes longer than all
 * the rest of a warm start. A compiler that does not know the device has another target, which it has to be asked for.
 */
static sgl_jit_status make(const struct jit_driver *driver, const struct jit_device *device, struct jit_kernel *kernel,
                           struct jit_message m) {
  const struct jit_compiler *compiler;
  struct jit_image image;
  char key[768];
  sgl_jit_status status;
  struct jit_target own = jit_target_exact(device->major, device->minor);
  cache_key(kernel, &own, key, sizeof key);
  if (load_cached(driver, device, key, kernel, &status, m))
    return status;
  status = jit_compiler(driver->version, &compiler, m);
  if (status != SGL_JIT_OK)
    return status;
  struct jit_target target = jit_target_for(compiler, device->major, device->minor);
  if (strcmp(target.name, own.name) != 0) {
    cache_key(kernel, &target, key, sizeof key);
    if (load_cached(driver, device, key, kernel, &status, m))
      return status;
  }
  status = jit_compile(compiler, kernel->key.op, &kernel->plan, &target, &image, m);
  if (status != SGL_JIT_OK)
    return status;
  status = load(driver, device, &image, kernel, m);
  if (status == SGL_JIT_OK) /* only what the driver has accepted is kept */
    jit_cache_write(jit_op_name(kernel->key.op), key, &image);
  free(image.data);
  return status;
}

static void publish(struct jit_kernel *kernel) {
  _Atomic(struct jit_kernel *) *bucket = bucket_of(&kernel->key);
  kernel->next = atomic_load_explicit(bucket, memory_order_relaxed);
  atomic_store_explicit(bucket, kernel, memory_order_release);
}

/* Under the lock: nobody else makes a kernel. */
static sgl_jit_status make_and_publish(const struct jit_driver *driver, const struct jit_device *device,
                                       const struct jit_kernel_key *key, struct jit_kernel **result,
                                       struct jit_message m) {
  char text[512];
  struct jit_message own = {text, sizeof text, NULL};
  struct jit_kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel)
    return jit_fail(m, SGL_JIT_ERROR_OUT_OF_MEMORY, "out of memory");
  kernel->key = *key;
  jit_plan(key->op, key->n, key->k, key->output_f32, &kernel->plan);
  kernel->status = make(driver, device, kernel, own);
  sgl_jit_status status = kernel->status;
  if (status == SGL_JIT_OK) {
    publish(kernel);
    *result = kernel;
    return SGL_JIT_OK;
  }
  bool lasting = status == SGL_JIT_ERROR_COMPILE || status == SGL_JIT_ERROR_UNSUPPORTED ||
                 (status == SGL_JIT_ERROR_LOAD && kernel->unfit);
  if (lasting && (kernel->message = strdup(text)) != NULL)
    publish(kernel); /* the next try would only fail again, and slowly */
  else
    free(kernel);
  return jit_fail(m, status, "%s", text);
}

sgl_jit_status jit_kernel(const struct jit_driver *driver, const struct jit_device *device,
                          const struct jit_kernel_key *key, const struct jit_kernel **kernel, struct jit_message m) {
  struct jit_kernel *found = find(key);
  if (!found) {
    pthread_mutex_lock(&lock);
    found = find(key);
    sgl_jit_status status = found ? SGL_JIT_OK : make_and_publish(driver, device, key, &found, m);
    pthread_mutex_unlock(&lock);
    if (status != SGL_JIT_OK)
      return status;
  }
  if (found->status != SGL_JIT_OK)
    return jit_fail(m, found->status, "%s", found->message);
  *kernel = found;
  return SGL_JIT_OK;
}
