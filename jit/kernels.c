/* Loaded kernels: found without a lock, made once. Threads that need different kernels make them side by side (NVRTC
 * and the driver allow it); those that need the same one wait for the first. */
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
  CACHE_ABI = 3,            /* of the kernels' parameters: another one needs other entries in the cache */
  LOCK_WAIT_MS = 30 * 1000, /* for another process's compile of the same kernel; then it is compiled here too */
  SHARED_WITHOUT_ASKING = 48 * 1024, /* bytes a block may have on every device */
};

/* A list for each hash value. Kernels are put in front, whole, and never removed. */
static _Atomic(struct jit_kernel *) buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for what is written here; held for moments only */

static bool same_key(const struct jit_kernel_key *a, const struct jit_kernel_key *b) {
  return a->n == b->n && a->k == b->k && a->op == b->op && a->output_f32 == b->output_f32 && a->device == b->device &&
         a->pdl == b->pdl && a->context == b->context;
}

static _Atomic(struct jit_kernel *) *bucket_of(const struct jit_kernel_key *key) {
  uint64_t hash = (uint64_t)key->n * 0x9e3779b97f4a7c15u + (uint64_t)key->k * 0xc2b2ae3d27d4eb4fu +
                  (uint64_t)key->op * 2 + key->output_f32 + (uint64_t)key->pdl * 4 + (uint64_t)key->device * 16 +
                  (uintptr_t)key->context / 64;
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
  for (int i = 0; !error && i < kernel->plan.path_count; i++)
    error = load_function(driver, device, &code, kernel->plan.paths[i].entry, kernel->plan.paths[i].shared,
                          &kernel->functions[i]);
  if (error)
    unload(driver, &code);
  return error;
}

static sgl_jit_status load(const struct jit_driver *driver, const struct jit_device *device,
                           const struct jit_image *image, struct jit_kernel *kernel, struct jit_message m) {
  /* Loading is unsafe, in CUDA's terms, while another stream of the process captures in the strict modes. */
  int mode = JIT_CUDA_CAPTURE_MODE_RELAXED;
  int64_t start = jit_now_ns();
  CUresult exchanged = driver->cuThreadExchangeStreamCaptureMode(&mode);
  CUresult error = load_all(driver, device, image->data, kernel);
  kernel->unfit = error == JIT_CUDA_INVALID_IMAGE || error == JIT_CUDA_NO_BINARY_FOR_GPU ||
                  error == JIT_CUDA_INVALID_PTX || error == JIT_CUDA_UNSUPPORTED_PTX_VERSION;
  if (!exchanged)
    driver->cuThreadExchangeStreamCaptureMode(&mode);
  jit_count(loads, 1);
  jit_count(load_ns, jit_now_ns() - start);
  if (jit_is_capture_error(error))
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
  return SGL_JIT_OK;
}

/* --- one at a time --- */

/* What a thread is making: code, for whichever device, so that one thread compiles it and the next one finds it. */
struct job {
  sgl_jit_kernel_spec spec;
  struct job *next;
};

static struct job *jobs; /* under the lock, as all below */
static pthread_cond_t job_ended = PTHREAD_COND_INITIALIZER;
static bool forked_in_job; /* this process is the child of one in which a thread was making something */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void before_fork(void) {
  pthread_mutex_lock(&lock);
}

static void in_parent(void) {
  pthread_mutex_unlock(&lock);
}

/* The other threads' jobs would never end here, and what they held of NVRTC's locks is held for ever. */
static void in_forked_child(void) {
  forked_in_job = forked_in_job || jobs;
  jobs = NULL;
  pthread_mutex_unlock(&lock);
}

static void watch_forks(void) {
  pthread_atfork(before_fork, in_parent, in_forked_child);
}

static bool is_being_made(const sgl_jit_kernel_spec *spec) {
  for (const struct job *j = jobs; j; j = j->next)
    if (j->spec.op == spec->op && j->spec.n == spec->n && j->spec.k == spec->k &&
        j->spec.output_dtype == spec->output_dtype)
      return true;
  return false;
}

static sgl_jit_status begin(struct job *job, struct jit_message m) {
  pthread_once(&fork_once, watch_forks);
  pthread_mutex_lock(&lock);
  while (is_being_made(&job->spec))
    pthread_cond_wait(&job_ended, &lock);
  bool dead = forked_in_job;
  if (!dead) {
    job->next = jobs;
    jobs = job;
  }
  pthread_mutex_unlock(&lock);
  return dead ? jit_fail(m, SGL_JIT_ERROR_NO_COMPILER,
                         "this process was forked while another thread compiled a kernel, and the compiler does not "
                         "work after that; start workers with spawn, or fork before the first use")
              : SGL_JIT_OK;
}

static void end(const struct job *job) {
  pthread_mutex_lock(&lock);
  struct job **j = &jobs;
  while (*j != job)
    j = &(*j)->next;
  *j = job->next;
  pthread_cond_broadcast(&job_ended);
  pthread_mutex_unlock(&lock);
}

/* --- making --- */

/* A kernel that is being made: for whom, and what was met on the way. */
struct making {
  const struct jit_driver *driver;
  const struct jit_device *device;
  struct jit_kernel *kernel;
  sgl_jit_kernel_spec spec;
  bool asked;      /* by sgl_jit_warm: may be compiled whatever the monitor says */
  int bad_entries; /* at the last look */
  struct jit_message m;
};

/* All that the compiled kernel depends on. Not the compiler's version: see cache.c in internal.h. */
static struct jit_cache_key cache_key(const sgl_jit_kernel_spec *spec, const struct jit_plan *plan,
                                      const struct jit_target *target) {
  struct jit_cache_key key;
  const struct jit_headers *headers = jit_kernel_headers((enum jit_op)spec->op);
  size_t size = sizeof key.text;
  int length =
      snprintf(key.text, size, "abi %d\nkernel %s\ntarget %s\ntext", CACHE_ABI, jit_spec_text(spec).text, target->name);
  for (int i = 0; i <= headers->count; i++) {
    const char *text = i < headers->count ? headers->texts[i] : jit_kernel_text((enum jit_op)spec->op);
    XXH128_hash_t hash = XXH3_128bits(text, strlen(text));
    length += snprintf(key.text + length, size - (size_t)length, " %016llx%016llx", (unsigned long long)hash.high64,
                       (unsigned long long)hash.low64);
  }
  length += snprintf(key.text + length, size - (size_t)length, "\noptions");
  for (int i = 0; i < plan->option_count; i++)
    length += snprintf(key.text + length, size - (size_t)length, " %s", plan->options[i]);
  snprintf(key.text + length, size - (size_t)length, "\n");
  return key;
}

/* False when no folder has an entry that the driver takes. After a change of drivers it may refuse one that is whole:
 * it is then compiled anew, and replaced if that helps. */
static bool load_cached(struct making *making, const struct jit_cache_key *key, sgl_jit_status *status) {
  making->bad_entries = 0;
  for (int kind = 0; kind < JIT_FOLDER_COUNT; kind++) {
    struct jit_image image;
    enum jit_entry_fault fault = jit_cache_read((enum jit_folder_kind)kind, key->text, &image);
    making->bad_entries += fault != JIT_ENTRY_GOOD && fault != JIT_ENTRY_MISSING;
    if (fault != JIT_ENTRY_GOOD)
      continue;
    *status = load(making->driver, making->device, &image, making->kernel, making->m);
    free(image.data);
    if (*status != SGL_JIT_ERROR_LOAD) {
      jit_count(bad_entries, making->bad_entries);
      if (kind == JIT_FOLDER_CACHE)
        jit_count(cache_hits, 1);
      else
        jit_count(prebuilt_hits, 1);
      return true;
    }
    making->bad_entries++;
  }
  return false;
}

/* A compiler that does not know the device has another target, which it has to be asked for. */
static sgl_jit_status make_with_compiler(struct making *making, const struct jit_target *own) {
  const struct jit_compiler *compiler;
  struct jit_kernel *kernel = making->kernel;
  struct jit_image image;
  int bad_entries = making->bad_entries;
  sgl_jit_status status = jit_compiler(making->driver->version, &compiler, making->m);
  if (status == SGL_JIT_OK) {
    struct jit_target target = jit_target_for(compiler, making->device->major, making->device->minor);
    struct jit_cache_key key = cache_key(&making->spec, &kernel->plan, &target);
    if (strcmp(target.name, own->name) != 0) {
      if (load_cached(making, &key, &status))
        return status;
      bad_entries += making->bad_entries;
    }
    if (!making->asked)
      status = jit_monitor(&making->spec, target.name, kernel->key.device, making->m);
    if (status == SGL_JIT_OK)
      status = jit_compile(compiler, kernel->key.op, &kernel->plan, &target, &image, making->m);
    if (status == SGL_JIT_OK) {
      status = load(making->driver, making->device, &image, kernel, making->m);
      if (status == SGL_JIT_OK) /* only what the driver has accepted is kept; what cannot be written is not */
        jit_cache_write(key.text, &image, (struct jit_message){NULL, 0, NULL});
      free(image.data);
    }
  }
  jit_count(cache_misses, 1);
  jit_count(bad_entries, bad_entries);
  return status;
}

/* The compiler is opened only after a look for the device's own target in the cache: opening it takes longer than all
 * the rest of a warm start. The second look finds what another process has compiled meanwhile. */
static sgl_jit_status make(struct making *making) {
  sgl_jit_status status;
  const struct jit_plan *plan = &making->kernel->plan;
  if (plan->path_count == 0 || !plan->paths[plan->path_count - 1].invariant)
    return jit_fail(making->m, SGL_JIT_ERROR_UNSUPPORTED,
                    "%d bytes of shared memory, what the device gives a block, are too few for this shape",
                    making->device->shared_bytes);
  struct jit_target own = jit_target_exact(making->device->major, making->device->minor);
  struct jit_cache_key key = cache_key(&making->spec, &making->kernel->plan, &own);
  if (load_cached(making, &key, &status))
    return status;
  int held = jit_cache_lock(key.text, LOCK_WAIT_MS);
  if (!load_cached(making, &key, &status))
    status = make_with_compiler(making, &own);
  jit_cache_unlock(held);
  return status;
}

static void publish(struct jit_kernel *kernel) {
  _Atomic(struct jit_kernel *) *bucket = bucket_of(&kernel->key);
  pthread_mutex_lock(&lock);
  kernel->next = atomic_load_explicit(bucket, memory_order_relaxed);
  atomic_store_explicit(bucket, kernel, memory_order_release);
  pthread_mutex_unlock(&lock);
}

static sgl_jit_status make_and_publish(struct making *making, const struct jit_kernel_key *key,
                                       struct jit_kernel **result, struct jit_message m) {
  char text[512];
  struct jit_kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel)
    return jit_fail(m, SGL_JIT_ERROR_OUT_OF_MEMORY, "out of memory");
  kernel->key = *key;
  jit_plan(key->op, key->n, key->k, key->output_f32, key->pdl, making->device->major * 10 + making->device->minor,
           making->device->shared_bytes, &kernel->plan);
  making->kernel = kernel;
  making->m = (struct jit_message){text, sizeof text, NULL};
  kernel->status = make(making);
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

static sgl_jit_status make_once(const struct jit_driver *driver, const struct jit_device *device,
                                const struct jit_kernel_key *key, bool asked, struct jit_kernel **result,
                                struct jit_message m) {
  sgl_jit_dtype output = !jit_has_shape(key->op) ? SGL_JIT_DTYPE_OTHER
                         : key->output_f32       ? SGL_JIT_DTYPE_FLOAT32
                                                 : SGL_JIT_DTYPE_BFLOAT16;
  struct job job = {.spec = {(sgl_jit_op)key->op, key->n, key->k, output}};
  struct making making = {.driver = driver, .device = device, .spec = job.spec, .asked = asked};
  sgl_jit_status status = begin(&job, m);
  if (status != SGL_JIT_OK)
    return status;
  *result = find(key);
  if (!*result)
    status = make_and_publish(&making, key, result, m);
  end(&job);
  return status;
}

sgl_jit_status jit_kernel(const struct jit_driver *driver, const struct jit_device *device,
                          const struct jit_kernel_key *key, bool asked, const struct jit_kernel **kernel,
                          struct jit_message m) {
  struct jit_kernel *found = find(key);
  if (!found) {
    sgl_jit_status status = make_once(driver, device, key, asked, &found, m);
    if (status != SGL_JIT_OK)
      return status;
  }
  if (found->status != SGL_JIT_OK)
    return jit_fail(m, found->status, "%s", found->message);
  *kernel = found;
  return SGL_JIT_OK;
}

/* --- without a device --- */

static bool is_cached(const struct jit_cache_key *key) {
  struct jit_image image;
  if (jit_cache_read(JIT_FOLDER_CACHE, key->text, &image) != JIT_ENTRY_GOOD)
    return false;
  jit_count(cache_hits, 1);
  free(image.data);
  return true;
}

void jit_spec_plan(const sgl_jit_kernel_spec *spec, const struct jit_target *target, sgl_jit_pdl pdl,
                   struct jit_plan *plan) {
  int capability = jit_target_capability(target->name);
  jit_plan((enum jit_op)spec->op, (int)spec->n, (int)spec->k, spec->output_dtype == SGL_JIT_DTYPE_FLOAT32, pdl,
           capability, jit_shared_limit(capability), plan);
}

static sgl_jit_pdl own_pdl(const struct jit_target *target) {
  return jit_pdl_on(jit_target_capability(target->name));
}

struct jit_cache_key jit_cache_key(const sgl_jit_kernel_spec *spec, const struct jit_target *target, sgl_jit_pdl pdl) {
  struct jit_plan plan;
  jit_spec_plan(spec, target, pdl, &plan);
  return cache_key(spec, &plan, target);
}

sgl_jit_status jit_kernel_image(const sgl_jit_kernel_spec *spec, const struct jit_target *target,
                                struct jit_image *image, struct jit_message m) {
  const struct jit_compiler *compiler;
  struct jit_plan plan;
  int major, minor;
  sgl_jit_status status = jit_compiler(0, &compiler, m);
  if (status != SGL_JIT_OK)
    return status;
  jit_target_parse(target->name, &major, &minor);
  if (strcmp(jit_target_for(compiler, major, minor).name, target->name) != 0)
    return jit_fail(m, SGL_JIT_ERROR_UNSUPPORTED, "this NVRTC does not know the target %s", target->name);
  jit_spec_plan(spec, target, own_pdl(target), &plan);
  return jit_compile(compiler, (enum jit_op)spec->op, &plan, target, image, m);
}

static sgl_jit_status compile_and_write(const sgl_jit_kernel_spec *spec, const struct jit_target *target,
                                        const struct jit_cache_key *key, struct jit_message m) {
  struct jit_image image;
  sgl_jit_status status = jit_kernel_image(spec, target, &image, m);
  if (status != SGL_JIT_OK)
    return status;
  status = jit_cache_write(key->text, &image, m);
  free(image.data);
  return status;
}

sgl_jit_status jit_kernel_to_cache(const sgl_jit_kernel_spec *spec, const struct jit_target *target,
                                   struct jit_message m) {
  struct job job = {.spec = *spec};
  struct jit_cache_key key = jit_cache_key(spec, target, own_pdl(target));
  sgl_jit_status status = begin(&job, m);
  if (status != SGL_JIT_OK)
    return status;
  if (!is_cached(&key)) {
    int held = jit_cache_lock(key.text, LOCK_WAIT_MS);
    if (!is_cached(&key)) {
      jit_count(cache_misses, 1);
      status = compile_and_write(spec, target, &key, m);
    }
    jit_cache_unlock(held);
  }
  end(&job);
  return status;
}
