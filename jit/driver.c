/* The CUDA driver, found with dlopen: its functions, the facts of its devices, and the context of a call. */
#include "internal.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static _Atomic(struct jit_driver *) ready;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static atomic_bool used;   /* the driver was touched in this process, or is being touched ... */
static atomic_bool forked; /* ... and then it forked: CUDA does not survive that */

static void after_fork(void) {
  if (atomic_load(&used))
    atomic_store(&forked, true);
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, after_fork);
}

struct jit_error_text jit_driver_error(const struct jit_driver *driver, CUresult error) {
  struct jit_error_text text;
  const char *name = NULL, *description = NULL;
  if (driver->cuGetErrorName(error, &name) != 0 || !name)
    snprintf(text.text, sizeof text.text, "CUDA error %d", error);
  else if (driver->cuGetErrorString(error, &description) != 0 || !description)
    snprintf(text.text, sizeof text.text, "%s", name);
  else
    snprintf(text.text, sizeof text.text, "%s: %s", name, description);
  return text;
}

static sgl_jit_status find_functions(void *library, struct jit_driver *driver, struct jit_message m) {
#define FIND(name, symbol, parameters) *(void **)&driver->name = dlsym(library, symbol);
  JIT_DRIVER_FUNCTIONS(FIND)
  JIT_DRIVER_FUNCTIONS_12(FIND)
#undef FIND
#define NEED(name, symbol, parameters)                                                                                 \
  if (!driver->name)                                                                                                   \
    return jit_fail(m, SGL_JIT_ERROR_NO_DRIVER,                                                                        \
                    "libcuda.so.1 has no function " symbol ": the CUDA driver is too old or damaged");
  JIT_DRIVER_FUNCTIONS(NEED)
#undef NEED
  driver->has_libraries = true;
#define HAS(name, symbol, parameters) driver->has_libraries = driver->has_libraries && driver->name;
  JIT_DRIVER_FUNCTIONS_12(HAS)
#undef HAS
  return SGL_JIT_OK;
}

static sgl_jit_status read_devices(struct jit_driver *driver, struct jit_message m) {
  CUresult error = driver->cuInit(0);
  if (error)
    return jit_fail(m, SGL_JIT_ERROR_NO_DRIVER, "cuInit failed with %s", jit_driver_error(driver, error).text);
  error = driver->cuDriverGetVersion(&driver->version);
  if (!error)
    error = driver->cuDeviceGetCount(&driver->device_count);
  if (error)
    return jit_fail(m, SGL_JIT_ERROR_NO_DRIVER, "the CUDA driver does not answer: %s",
                    jit_driver_error(driver, error).text);
  if (driver->device_count <= 0)
    return jit_fail(m, SGL_JIT_ERROR_NO_DRIVER, "the CUDA driver has no device (see CUDA_VISIBLE_DEVICES)");
  driver->devices = calloc((size_t)driver->device_count, sizeof *driver->devices);
  if (!driver->devices)
    return jit_fail(m, SGL_JIT_ERROR_OUT_OF_MEMORY, "out of memory");
  for (int i = 0; i < driver->device_count; i++) {
    struct jit_device *d = &driver->devices[i];
    error = driver->cuDeviceGet(&d->handle, i);
    if (!error)
      error = driver->cuDeviceGetAttribute(&d->major, JIT_CUDA_DEVICE_MAJOR, d->handle);
    if (!error)
      error = driver->cuDeviceGetAttribute(&d->minor, JIT_CUDA_DEVICE_MINOR, d->handle);
    if (!error)
      error = driver->cuDeviceGetAttribute(&d->shared_bytes, JIT_CUDA_DEVICE_SHARED_OPTIN, d->handle);
    if (error)
      return jit_fail(m, SGL_JIT_ERROR_NO_DRIVER, "the CUDA driver does not describe device %d: %s", i,
                      jit_driver_error(driver, error).text);
    int window;
    if (!driver->cuDeviceGetAttribute(&window, JIT_CUDA_DEVICE_WINDOW, d->handle) && window > 0)
      d->window_bytes = (size_t)window;
  }
  return SGL_JIT_OK;
}

static sgl_jit_status open_driver(struct jit_driver **driver, struct jit_message m) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library)
    library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    const char *reason = dlerror();
    return jit_fail(m, SGL_JIT_ERROR_NO_DRIVER, "no CUDA driver: %s", reason ? reason : "libcuda.so.1 not found");
  }
  struct jit_driver *d = calloc(1, sizeof *d);
  sgl_jit_status status = d ? find_functions(library, d, m) : jit_fail(m, SGL_JIT_ERROR_OUT_OF_MEMORY, "out of memory");
  if (status == SGL_JIT_OK)
    status = read_devices(d, m);
  if (status != SGL_JIT_OK) {
    if (d)
      free(d->devices);
    free(d);
    dlclose(library);
    return status;
  }
  *driver = d; /* kept, like the library, until the process ends */
  return SGL_JIT_OK;
}

/* Under the lock, which a child of a fork in the meantime would find locked for ever. */
static sgl_jit_status start(struct jit_driver **driver, struct jit_message m) {
  atomic_store(&used, true);
  sgl_jit_status status = open_driver(driver, m);
  if (status != SGL_JIT_OK)
    atomic_store(&used, false); /* the next call tries again */
  return status;
}

sgl_jit_status jit_driver(const struct jit_driver **driver, struct jit_message m) {
  if (atomic_load_explicit(&forked, memory_order_relaxed))
    return jit_fail(m, SGL_JIT_ERROR_NO_DRIVER,
                    "this process was forked from one that had used CUDA, and CUDA does not work after a fork; start "
                    "workers with spawn, or fork before the first use");
  struct jit_driver *d = atomic_load_explicit(&ready, memory_order_acquire);
  if (!d) {
    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&lock);
    d = atomic_load_explicit(&ready, memory_order_relaxed);
    sgl_jit_status status = d ? SGL_JIT_OK : start(&d, m);
    if (status == SGL_JIT_OK)
      atomic_store_explicit(&ready, d, memory_order_release);
    pthread_mutex_unlock(&lock);
    if (status != SGL_JIT_OK)
      return status;
  }
  *driver = d;
  return SGL_JIT_OK;
}

sgl_jit_status jit_context_enter(const struct jit_driver *driver, struct jit_device *device,
                                 struct jit_context *context, struct jit_message m) {
  CUdevice current;
  context->pushed = NULL;
  /* Without a current context this fails with CUDA_ERROR_INVALID_CONTEXT, which tools that report every failed driver
   * call show. To ask cuCtxGetCurrent before it would cost every call for the sake of those few. */
  if (driver->cuCtxGetDevice(&current) == 0 && current == device->handle)
    return SGL_JIT_OK;
  CUcontext primary = atomic_load_explicit(&device->primary, memory_order_acquire);
  CUresult error = 0;
  if (!primary) {
    pthread_mutex_lock(&lock);
    primary = atomic_load_explicit(&device->primary, memory_order_relaxed);
    if (!primary) {
      error = driver->cuDevicePrimaryCtxRetain(&primary, device->handle);
      if (!error)
        atomic_store_explicit(&device->primary, primary, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
  }
  if (!error)
    error = driver->cuCtxPushCurrent(primary);
  if (error)
    return jit_fail(m, error == JIT_CUDA_OUT_OF_MEMORY ? SGL_JIT_ERROR_OUT_OF_MEMORY : SGL_JIT_ERROR_NO_DRIVER,
                    "no context on the device: %s", jit_driver_error(driver, error).text);
  context->pushed = primary;
  return SGL_JIT_OK;
}

void jit_context_leave(const struct jit_driver *driver, struct jit_context *context) {
  CUcontext popped;
  if (context->pushed)
    driver->cuCtxPopCurrent(&popped);
}
