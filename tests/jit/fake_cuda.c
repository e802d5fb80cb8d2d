/* A stand-in for the CUDA driver whose devices are this machine's CPU: device memory is host memory, and a launch runs
 * the kernel that fake_nvrtc.c compiled. It records calls and fails where it is told to (fakes.h). It is as strict as
 * the real one where the library depends on it: no context, another context's function, unopted shared memory, capture.
 * The real NVRTC's cubins load too, and have the functions that are in them, but do not launch. */
#include "fakes.h"
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT struct fake_cuda fake_cuda = {
    .version = 13000, .device_count = 2, .major = 9, .minor = 0, .shared_optin = 232448, .window_bytes = 134217728};

enum { INVALID_VALUE = 1, NOT_INITIALIZED = 3, INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201 };
enum {
  NO_BINARY_FOR_GPU = 209,
  MACHINE_CUDA = 190,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  ILLEGAL_ADDRESS = 700,
  CAPTURE_UNSUPPORTED = 900
};

struct context {
  int device;
};
struct function {
  void *entry;
  int (*launch)(void *entry, const unsigned *grid, unsigned threads, unsigned shared_bytes, void **arguments);
  struct context *context; /* NULL: a kernel of a library, of no context */
  int shared[FAKE_DEVICES];
  char name[64];
};
struct code {
  void *handle; /* NULL: a real cubin, or idle */
  unsigned char *cubin;
  struct context *context;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  const char *name;
  int count;
} calls[64];
static atomic_int initialised;
static struct context primaries[FAKE_DEVICES];
/* Reached without a call of the loader's, which would be the only one beside the driver's in a warm call. */
#define OF_THREAD static _Thread_local __attribute__((tls_model("initial-exec")))
OF_THREAD struct context *stack[16];
OF_THREAD int depth;
OF_THREAD int capture_mode; /* 0 global, 1 thread-local, 2 relaxed */

static void record(const char *name) {
  if (fake_cuda.idle)
    return;
  pthread_mutex_lock(&lock);
  int i = 0;
  while (calls[i].name && strcmp(calls[i].name, name) != 0)
    i++;
  calls[i].name = name;
  calls[i].count++;
  pthread_mutex_unlock(&lock);
}

EXPORT fake_cuda_count_function fake_cuda_count;
int fake_cuda_count(const char *name) {
  int count = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; calls[i].name; i++)
    if (!*name || strcmp(calls[i].name, name) == 0)
      count += calls[i].count;
  pthread_mutex_unlock(&lock);
  return count;
}

EXPORT fake_cuda_context_function fake_cuda_context;
void *fake_cuda_context(int ordinal, int push) {
  struct context *c = calloc(1, sizeof *c);
  c->device = ordinal + 10;
  if (push)
    stack[depth++] = c;
  return c;
}

__attribute__((constructor)) static void hold_load(void) {
  const char *told = getenv("SGL_TEST_HOLD_LOAD");
  int in, out;
  char byte = 0;
  if (told && sscanf(told, "%d %d", &in, &out) == 2 && (write(out, &byte, 1) != 1 || read(in, &byte, 1) != 1))
    fprintf(stderr, "  fake driver: nobody holds the load\n");
}

static struct context *current(void) {
  return depth ? stack[depth - 1] : NULL;
}

#define DRIVER(name, ...)                                                                                              \
  EXPORT int name(__VA_ARGS__);                                                                                        \
  int name(__VA_ARGS__)

DRIVER(cuInit, unsigned flags) {
  record("cuInit");
  initialised = !flags && !fake_cuda.init_error;
  return fake_cuda.init_error;
}

DRIVER(cuDriverGetVersion, int *version) {
  record("cuDriverGetVersion");
  *version = fake_cuda.version;
  return 0;
}

DRIVER(cuGetErrorName, int error, const char **text) {
  record("cuGetErrorName");
  *text = error == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == 100 ? "CUDA_ERROR_NO_DEVICE"
          : error == 900 ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
                         : "CUDA_ERROR_SOMETHING";
  return fake_cuda.hide_error_names ? INVALID_VALUE : 0;
}

DRIVER(cuGetErrorString, int error, const char **text) {
  (void)error;
  record("cuGetErrorString");
  *text = "as told by the fake driver";
  return 0;
}

DRIVER(cuDeviceGetCount, int *count) {
  record("cuDeviceGetCount");
  *count = fake_cuda.device_count;
  return initialised ? 0 : NOT_INITIALIZED;
}

/* The real NVRTC asks the driver for it when it compiles, and takes an error for an answer. */
DRIVER(cuGetExportTable, const void **table, const void *id) {
  (void)id;
  *table = NULL;
  return NOT_FOUND;
}

/* A handle is the ordinal plus 10, so that mixing them up shows. */
DRIVER(cuDeviceGet, int *device, int ordinal) {
  record("cuDeviceGet");
  *device = ordinal + 10;
  return ordinal < fake_cuda.device_count ? 0 : INVALID_DEVICE;
}

DRIVER(cuDeviceGetAttribute, int *value, int attribute, int device) {
  record("cuDeviceGetAttribute");
  *value = attribute == 75    ? fake_cuda.major
           : attribute == 76  ? fake_cuda.minor
           : attribute == 109 ? fake_cuda.window_bytes
                              : fake_cuda.shared_optin;
  return device >= 10 && (attribute == 75 || attribute == 76 || attribute == 97 || attribute == 109) ? 0
                                                                                                     : INVALID_VALUE;
}

DRIVER(cuDevicePrimaryCtxRetain, struct context **context, int device) {
  record("cuDevicePrimaryCtxRetain");
  primaries[device - 10].device = device;
  *context = &primaries[device - 10];
  return fake_cuda.retain_error;
}

DRIVER(cuCtxGetCurrent, struct context **context) {
  record("cuCtxGetCurrent");
  *context = current();
  return 0;
}

DRIVER(cuCtxGetDevice, int *device) {
  record("cuCtxGetDevice");
  if (!current())
    return INVALID_CONTEXT;
  *device = current()->device;
  return 0;
}

DRIVER(cuCtxSetCurrent, struct context *context) {
  record("cuCtxSetCurrent");
  depth = depth ? depth : 1;
  stack[depth - 1] = context;
  return 0;
}

DRIVER(cuMemAlloc_v2, uint64_t *memory, size_t size) {
  record("cuMemAlloc");
  *memory = (uint64_t)(uintptr_t)aligned_alloc(256, (size + 255) / 256 * 256);
  return current() && *memory ? 0 : INVALID_CONTEXT;
}

DRIVER(cuMemFree_v2, uint64_t memory) {
  record("cuMemFree");
  free((void *)(uintptr_t)memory);
  return 0;
}

DRIVER(cuCtxPushCurrent_v2, struct context *context) {
  record("cuCtxPushCurrent");
  stack[depth++] = context;
  return 0;
}

DRIVER(cuCtxPopCurrent_v2, struct context **context) {
  record("cuCtxPopCurrent");
  if (!depth)
    return INVALID_CONTEXT;
  *context = stack[--depth];
  return 0;
}

DRIVER(cuThreadExchangeStreamCaptureMode, int *mode) {
  record("cuThreadExchangeStreamCaptureMode");
  int old = capture_mode;
  capture_mode = *mode;
  *mode = old;
  return 0;
}

DRIVER(cuStreamIsCapturing, void *stream, int *status) {
  (void)stream;
  record("cuStreamIsCapturing");
  *status = fake_cuda.capturing;
  return 0;
}

DRIVER(cuMemcpyDtoDAsync_v2, uint64_t to, uint64_t from, size_t size, void *stream) {
  record("cuMemcpyDtoDAsync");
  fake_cuda.stream = stream;
  if (!fake_cuda.copy_error)
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
  return fake_cuda.copy_error;
}

DRIVER(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t size, void *stream) {
  record("cuMemcpyDtoHAsync");
  fake_cuda.stream = stream;
  if (!fake_cuda.copy_error)
    memcpy(to, (const void *)(uintptr_t)from, size);
  return fake_cuda.copy_error;
}

DRIVER(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t size, void *stream) {
  record("cuMemcpyHtoDAsync");
  fake_cuda.stream = stream;
  if (!fake_cuda.copy_error)
    memcpy((void *)(uintptr_t)to, from, size);
  return fake_cuda.copy_error;
}

DRIVER(cuStreamSynchronize, void *stream) {
  record("cuStreamSynchronize");
  return fake_cuda.capturing && capture_mode != 2 ? CAPTURE_UNSUPPORTED
         : stream == fake_cuda.stream             ? 0
                                                  : INVALID_HANDLE;
}

/* The image is a shared library; its end follows from its section table, which is the last thing in it. */
static int load(struct code **code, const void *image, struct context *context) {
  const Elf64_Ehdr *header = image;
  if (!current())
    return INVALID_CONTEXT;
  if (fake_cuda.refuse_load == 2 || (fake_cuda.refuse_load == 1 && capture_mode != 2))
    return CAPTURE_UNSUPPORTED;
  if (fake_cuda.load_error)
    return fake_cuda.load_error;
  if (fake_cuda.idle) {
    *code = calloc(1, sizeof **code);
    (*code)->context = context;
    return 0;
  }
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
    return INVALID_IMAGE;
  size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
  if (header->e_machine == MACHINE_CUDA) {
    *code = malloc(sizeof **code);
    **code = (struct code){NULL, malloc(size), context};
    memcpy((*code)->cubin, image, size);
    return 0;
  }
  char path[] = "/tmp/sgl-fake-cuda-XXXXXX";
  int file = mkstemp(path);
  void *handle = write(file, image, size) == (ssize_t)size ? dlopen(path, RTLD_NOW) : NULL;
  close(file);
  unlink(path);
  if (!handle) {
    const char *reason = dlerror();
    fprintf(stderr, "  fake driver: %s\n", reason ? reason : "a file in /tmp could not be written");
    return INVALID_IMAGE;
  }
  *code = malloc(sizeof **code);
  **code = (struct code){handle, NULL, context};
  return 0;
}

static int unload(struct code *code) {
  if (code->handle)
    dlclose(code->handle);
  free(code->cubin);
  free(code);
  return 0;
}

/* A function of a cubin is a section of its own. */
static void *find_in_cubin(const struct code *code, const char *name) {
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)code->cubin;
  const Elf64_Shdr *sections = (const Elf64_Shdr *)(code->cubin + header->e_shoff);
  const char *names = (const char *)code->cubin + sections[header->e_shstrndx].sh_offset;
  for (int i = 0; i < header->e_shnum; i++)
    if (strncmp(names + sections[i].sh_name, ".text.", 6) == 0 && strcmp(names + sections[i].sh_name + 6, name) == 0)
      return code->cubin + sections[i].sh_offset;
  return NULL;
}

static int find(struct function **function, struct code *code, const char *name) {
  struct function *f = calloc(1, sizeof *f);
  if (code->handle) {
    f->entry = dlsym(code->handle, name);
    *(void **)&f->launch = dlsym(code->handle, "emulate_launch");
  } else if (code->cubin) {
    f->entry = find_in_cubin(code, name);
  }
  f->context = code->context;
  for (int i = 0; i < FAKE_DEVICES; i++)
    f->shared[i] = 48 * 1024;
  snprintf(f->name, sizeof f->name, "%s", name);
  int missing = (code->handle && !f->launch) || ((code->handle || code->cubin) && !f->entry);
  if (fake_cuda.function_error || missing) {
    free(f);
    return fake_cuda.function_error ? fake_cuda.function_error : NOT_FOUND;
  }
  *function = f;
  return 0;
}

DRIVER(cuModuleLoadData, struct code **module, const void *image) {
  record("cuModuleLoadData");
  return load(module, image, current());
}

DRIVER(cuModuleUnload, struct code *module) {
  record("cuModuleUnload");
  return unload(module);
}

DRIVER(cuModuleGetFunction, struct function **function, struct code *module, const char *name) {
  record("cuModuleGetFunction");
  return find(function, module, name);
}

DRIVER(cuFuncSetAttribute, struct function *function, int attribute, int value) {
  record("cuFuncSetAttribute");
  if (attribute != 8 || value > fake_cuda.shared_optin)
    return INVALID_VALUE;
  function->shared[function->context->device - 10] = value;
  return fake_cuda.attribute_error;
}

#ifndef FAKE_CUDA_11
DRIVER(cuLibraryLoadData, struct code **library, const void *image, int *jit_options, void **jit_values,
       unsigned jit_count, int *options, void **values, unsigned count) {
  record("cuLibraryLoadData");
  (void)jit_options, (void)jit_values, (void)options, (void)values;
  return jit_count || count ? INVALID_VALUE : load(library, image, NULL);
}

DRIVER(cuLibraryUnload, struct code *library) {
  record("cuLibraryUnload");
  return unload(library);
}

DRIVER(cuLibraryGetKernel, struct function **kernel, struct code *library, const char *name) {
  record("cuLibraryGetKernel");
  return find(kernel, library, name);
}

DRIVER(cuKernelGetFunction, struct function **function, struct function *kernel) {
  record("cuKernelGetFunction");
  *function = kernel;
  return current() ? 0 : INVALID_CONTEXT;
}

DRIVER(cuKernelSetAttribute, int attribute, int value, struct function *kernel, int device) {
  record("cuKernelSetAttribute");
  if (attribute != 8 || value > fake_cuda.shared_optin || device < 10)
    return INVALID_VALUE;
  kernel->shared[device - 10] = value;
  return fake_cuda.attribute_error;
}
#endif

static int launch(struct function *f, const unsigned grid[3], const unsigned block[3], unsigned shared_bytes,
                  void *stream, int overlap, const void *streamed, size_t streamed_bytes, void **arguments) {
  if (!current())
    return INVALID_CONTEXT;
  if (f->context && f->context != current())
    return INVALID_HANDLE;
  if (!grid[0] || !grid[1] || grid[2] != 1 || !block[0] || block[0] > 1024 || block[1] != 1 || block[2] != 1 ||
      (int)shared_bytes > f->shared[current()->device - 10])
    return INVALID_VALUE;
  if (fake_cuda.idle)
    return 0;
  pthread_mutex_lock(&lock);
  memcpy(fake_cuda.grid, grid, sizeof fake_cuda.grid);
  memcpy(fake_cuda.block, block, sizeof fake_cuda.block);
  fake_cuda.shared_bytes = shared_bytes;
  fake_cuda.stream = stream;
  fake_cuda.overlap = overlap;
  fake_cuda.streamed = streamed;
  fake_cuda.streamed_bytes = streamed_bytes;
  memcpy(fake_cuda.entry, f->name, sizeof f->name);
  pthread_mutex_unlock(&lock);
  if (fake_cuda.launch_error)
    return fake_cuda.launch_error;
  if (!f->launch)
    return NO_BINARY_FOR_GPU;
  return f->launch(f->entry, grid, block[0], shared_bytes, arguments) ? ILLEGAL_ADDRESS : 0;
}

DRIVER(cuLaunchKernel, struct function *f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
       unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **arguments, void **extra) {
  record("cuLaunchKernel");
  return extra ? INVALID_VALUE
               : launch(f, (unsigned[]){grid_x, grid_y, grid_z}, (unsigned[]){block_x, block_y, block_z}, shared_bytes,
                        stream, 0, NULL, 0, arguments);
}

#ifndef FAKE_CUDA_11
/* CUlaunchConfig of cuda.h, as this library fills it in: an access policy window (1) that streams, programmatic stream
 * serialization (6), or both. */
struct launch_config {
  unsigned grid[3], block[3], shared_bytes;
  void *stream;
  struct {
    int id, pad;
    union {
      char size[64];
      int number;
      struct {
        const void *base;
        size_t bytes;
        float hit_ratio;
        int hit, miss;
      } window;
    } value;
  } * attributes;
  unsigned attribute_count;
};

DRIVER(cuLaunchKernelEx, const struct launch_config *c, struct function *f, void **arguments, void **extra) {
  const void *streamed = NULL;
  size_t streamed_bytes = 0;
  int overlap = 0;
  record("cuLaunchKernelEx");
  if (extra)
    return INVALID_VALUE;
  for (unsigned i = 0; i < c->attribute_count; i++) {
    if (c->attributes[i].id == 1 && !streamed && c->attributes[i].value.window.hit_ratio == 1 &&
        c->attributes[i].value.window.hit == 1 && c->attributes[i].value.window.miss == 0 &&
        c->attributes[i].value.window.bytes <= (size_t)fake_cuda.window_bytes) {
      streamed = c->attributes[i].value.window.base;
      streamed_bytes = c->attributes[i].value.window.bytes;
    } else if (c->attributes[i].id == 6 && !overlap && c->attributes[i].value.number == 1) {
      overlap = 1;
    } else {
      return INVALID_VALUE;
    }
  }
  return launch(f, c->grid, c->block, c->shared_bytes, c->stream, overlap, streamed, streamed_bytes, arguments);
}
#endif
