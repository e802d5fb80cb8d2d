/* Private interface of libsgl_kernel_jit: what its files need of each other, in the order of a call.
 *
 *   api.c -> checks.c -> reference.c                                     (CPU)
 *                     -> launch.c -> driver.c                            (CUDA, every call)
 *                                 -> kernels.c -> paths.c, kernel_text.c (first use of a shape on a device)
 *                                              -> nvrtc.c, cache.c
 */
#ifndef SGL_JIT_INTERNAL_H
#define SGL_JIT_INTERNAL_H

#include "sgl_kernel_jit/sgl_kernel_jit.h"
#include <stdbool.h>
#include <stdint.h>

/* --- status.c --- */

/* The caller's message buffer, and the public function whose name every message begins with. */
struct jit_message {
  char *text;
  size_t size;
  const char *function; /* NULL: no prefix */
};

/* Writes the message and returns the status: `return jit_fail(m, SGL_JIT_ERROR_LOAD, "...", ...)`. */
sgl_jit_status jit_fail(struct jit_message m, sgl_jit_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- checks.c --- */

enum jit_op { JIT_ROUTER, JIT_FUSED_A };

/* A checked call: output[m, n] = sum over k of a[m, k] * w[n, k], everything packed and row-major. */
struct jit_gemm {
  enum jit_op op;
  void *output;
  const void *a, *w;
  int tokens, n, k;
  bool output_f32; /* else bfloat16 */
  bool cuda;       /* else CPU */
  int device;      /* CUDA ordinal */
};

sgl_jit_status jit_check_router(const sgl_jit_tensor *output, const sgl_jit_tensor *hidden_states,
                                const sgl_jit_tensor *router_weights, struct jit_gemm *gemm, struct jit_message m);
sgl_jit_status jit_check_fused_a(const sgl_jit_tensor *output, const sgl_jit_tensor *mat_a, const sgl_jit_tensor *mat_b,
                                 struct jit_gemm *gemm, struct jit_message m);

/* --- reference.c --- */

void jit_reference_gemm(const struct jit_gemm *gemm);

/* --- driver.c --- */

typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUfunc_st *CUfunction; /* a CUkernel is passed as one, as the CUDA 12 driver allows */

/* Driver functions that every supported driver has, and those that came with CUDA 12.0. */
#define JIT_DRIVER_FUNCTIONS(X)                                                                                        \
  X(cuInit, "cuInit", (unsigned flags))                                                                                \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                                                          \
  X(cuGetErrorName, "cuGetErrorName", (CUresult error, const char **text))                                             \
  X(cuGetErrorString, "cuGetErrorString", (CUresult error, const char **text))                                         \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                                                \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal))                                                      \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, CUdevice device))                        \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext * context, CUdevice device))                      \
  X(cuCtxGetCurrent, "cuCtxGetCurrent", (CUcontext * context))                                                         \
  X(cuCtxGetDevice, "cuCtxGetDevice", (CUdevice * device))                                                             \
  X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext context))                                                      \
  X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext * context))                                                      \
  X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (int *mode))                               \
  X(cuModuleLoadData, "cuModuleLoadData", (CUmodule * module, const void *image))                                      \
  X(cuModuleUnload, "cuModuleUnload", (CUmodule module))                                                               \
  X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction * function, CUmodule module, const char *name))            \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction function, int attribute, int value))                         \
  X(cuLaunchKernel, "cuLaunchKernel",                                                                                  \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,       \
     unsigned block_z, unsigned shared_bytes, CUstream stream, void **arguments, void **extra))
#define JIT_DRIVER_FUNCTIONS_12(X)                                                                                     \
  X(cuLibraryLoadData, "cuLibraryLoadData",                                                                            \
    (CUlibrary * library, const void *image, int *jit_options, void **jit_values, unsigned jit_count, int *options,    \
     void **values, unsigned count))                                                                                   \
  X(cuLibraryUnload, "cuLibraryUnload", (CUlibrary library))                                                           \
  X(cuLibraryGetKernel, "cuLibraryGetKernel", (CUfunction * kernel, CUlibrary library, const char *name))              \
  X(cuKernelGetFunction, "cuKernelGetFunction", (CUfunction * function, CUfunction kernel))                            \
  X(cuKernelSetAttribute, "cuKernelSetAttribute", (int attribute, int value, CUfunction kernel, CUdevice device))

struct jit_device {
  CUdevice handle;
  int major, minor;           /* compute capability */
  int shared_bytes;           /* what a block may have after opting in */
  _Atomic(CUcontext) primary; /* retained at first need, never released: gone after cudaDeviceReset */
};

struct jit_driver {
#define JIT_POINTER(name, symbol, parameters) CUresult(*name) parameters;
  JIT_DRIVER_FUNCTIONS(JIT_POINTER)
  JIT_DRIVER_FUNCTIONS_12(JIT_POINTER)
#undef JIT_POINTER
  bool has_libraries; /* the CUDA 12.0 functions: kernels that belong to no context */
  int version;        /* 13000 is 13.0 */
  int device_count;
  struct jit_device *devices;
};

/* Numbers from cuda.h, which the build does not need. */
enum {
  JIT_CUDA_OUT_OF_MEMORY = 2,
  JIT_CUDA_INVALID_IMAGE = 200,
  JIT_CUDA_NO_BINARY_FOR_GPU = 209,
  JIT_CUDA_INVALID_PTX = 218,
  JIT_CUDA_UNSUPPORTED_PTX_VERSION = 222,
  JIT_CUDA_EXECUTION_FIRST = 700, /* CUDA_ERROR_ILLEGAL_ADDRESS and others that earlier work left behind ... */
  JIT_CUDA_EXECUTION_LAST = 799,  /* ... CUDA_ERROR_LAUNCH_FAILED is 719; 800 is another group */
  JIT_CUDA_CAPTURE_FIRST = 900,   /* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ... */
  JIT_CUDA_CAPTURE_LAST = 908,    /* ... CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD */
  JIT_CUDA_CAPTURE_MODE_RELAXED = 2,
  JIT_CUDA_DEVICE_SHARED_OPTIN = 97,
  JIT_CUDA_DEVICE_MAJOR = 75,
  JIT_CUDA_DEVICE_MINOR = 76,
  JIT_CUDA_FUNCTION_DYNAMIC_SHARED = 8,
};

/* The driver, found and initialised at first use; later calls read one pointer. An error in a child of a process that
 * had used it. */
sgl_jit_status jit_driver(const struct jit_driver **driver, struct jit_message m);

/* Makes a context of the device current: keeps the current one when it is of that device, else pushes the primary one.
 */
struct jit_context {
  CUcontext pushed;
};
sgl_jit_status jit_context_enter(const struct jit_driver *driver, struct jit_device *device,
                                 struct jit_context *context, struct jit_message m);
void jit_context_leave(const struct jit_driver *driver, struct jit_context *context);

/* "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected" */
struct jit_error_text {
  char text[160];
};
struct jit_error_text jit_driver_error(const struct jit_driver *driver, CUresult error);

/* --- paths.c --- */

/* One way to compute an operator: an entry point of its kernel text, and what a block of it computes. */
struct jit_path {
  const char *entry;
  int tokens; /* that one block computes; more take more blocks */
};

#define JIT_MAX_PATHS 5

/* How an operator is computed for one shape, whatever the number of tokens. */
struct jit_plan {
  const struct jit_path *paths; /* by rising number of tokens */
  int path_count;
  int warps;           /* of a block */
  int columns;         /* of the output, computed by a block */
  int token_floats;    /* partial sums of a token and warp in shared memory */
  char options[5][32]; /* macro definitions for the kernel text */
  int option_count;
};

void jit_plan(enum jit_op op, int n, int k, bool output_f32, struct jit_plan *plan);
/* Shared memory of a block, in bytes. */
int jit_plan_shared(const struct jit_plan *plan, int path);

/* --- kernel_text.c --- */

extern const char jit_text_device[], jit_text_router[], jit_text_fused_a[];
/* The kernel text of an operator; it includes <device.cuh>, which is jit_text_device. */
const char *jit_kernel_text(enum jit_op op);
/* "dsv3_router_gemm" */
const char *jit_op_name(enum jit_op op);

/* --- nvrtc.c --- */

/* A compiled kernel. */
struct jit_image {
  void *data; /* malloc */
  size_t size;
};

/* A name that NVRTC and the driver understand: "sm_90a" gives a cubin, "compute_90" (last resort) PTX. */
struct jit_target {
  char name[24];
};

struct jit_compiler;

/* NVRTC, found and loaded at first use. Not thread-safe: kernels.c holds its lock. */
sgl_jit_status jit_compiler(int driver_version, const struct jit_compiler **compiler, struct jit_message m);
/* The device's own target, whatever the compiler. */
struct jit_target jit_target_exact(int major, int minor);
/* The best target for the device that the compiler knows. */
struct jit_target jit_target_for(const struct jit_compiler *compiler, int major, int minor);
sgl_jit_status jit_compile(const struct jit_compiler *compiler, enum jit_op op, const struct jit_plan *plan,
                           const struct jit_target *target, struct jit_image *image, struct jit_message m);

/* --- cache.c --- */

/* The disk cache. Errors are no errors: a kernel that cannot be read is compiled, one that cannot be written is not
 * kept. `key` is all that the image depends on: kernel texts, options, target, the ABI of the parameters. The
 * compiler's version is not part of it: whichever compiled an entry, it computes what the texts say, and to learn the
 * installed one's version it would have to be opened, which costs more than all the rest of a warm start. So an entry
 * outlives a newer NVRTC: it is replaced when the driver refuses it, or by hand, when the folder is removed. */
bool jit_cache_read(const char *name, const char *key, struct jit_image *image);
void jit_cache_write(const char *name, const char *key, const struct jit_image *image);

/* --- kernels.c --- */

struct jit_kernel_key {
  enum jit_op op;
  int n, k;
  bool output_f32;
  int device;
  CUcontext context; /* NULL where kernels belong to no context */
};

/* A loaded kernel: immutable once found. Or, with status not SGL_JIT_OK, why there never will be one. */
struct jit_kernel {
  struct jit_kernel_key key;
  sgl_jit_status status;
  char *message;
  struct jit_plan plan;
  CUfunction functions[JIT_MAX_PATHS];
  int function_count; /* paths that fit the device: the first ones of the plan */
  bool unfit;         /* the driver refused the code itself, and would again; other refusals may pass */
  struct jit_kernel *next;
};

/* The kernel for a key: one lookup without a lock, at first use loaded from the cache or compiled. The device's context
 * is current. */
sgl_jit_status jit_kernel(const struct jit_driver *driver, const struct jit_device *device,
                          const struct jit_kernel_key *key, const struct jit_kernel **kernel, struct jit_message m);

/* --- launch.c --- */

sgl_jit_status jit_launch_gemm(const struct jit_gemm *gemm, void *stream, struct jit_message m);

#endif
