/* Private interface of libsgl_kernel_jit: what its files need of each other, in the order of a call.
 *
 *   api.c -> checks.c, checks_bmm.c
 *                     -> reference.c                                     (CPU)
 *                     -> launch.c -> driver.c                            (CUDA, every call)
 *                                 -> kernels.c -> paths.c, kernel_text.c (first use of a shape on a device)
 *                                              -> nvrtc.c -> library.c, monitor.c
 *                                              -> cache.c, cache_lock.c -> cache_file.c
 *                     -> bmm.c -> launch.c, cublaslt.c -> library.c      (bmm_fp8)
 *   warm.c -> checks.c, launch.c or kernels.c                            (kernels ahead of their first use)
 *
 * native.h has what the operators with one kernel for every shape need beside it.
 */
#ifndef SGL_JIT_INTERNAL_H
#define SGL_JIT_INTERNAL_H

#include "sgl_kernel_jit/sgl_kernel_jit.h"
#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* --- status.c --- */

/* The caller's message buffer, and the public function whose name every message begins with. */
struct jit_message {
  char *text;
  size_t size;
  const char *function; /* NULL: no prefix */
};

/* Writes the message and returns the status: `return jit_fail(m, SGL_JIT_ERROR_LOAD, "...", ...)`. */
sgl_jit_status jit_fail(struct jit_message m, sgl_jit_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* --- checks.c --- */

/* Whether two pieces of memory, addresses and sizes in bytes, have a byte in common. */
static inline bool jit_overlap(uintptr_t a, uintptr_t a_size, uintptr_t b, uintptr_t b_size) {
  return a < b + b_size && b < a + a_size;
}

/* The first two have a kernel for each shape, those behind them one for every shape and dtype. */
enum jit_op {
  JIT_ROUTER = SGL_JIT_OP_DSV3_ROUTER_GEMM,
  JIT_FUSED_A = SGL_JIT_OP_DSV3_FUSED_A_GEMM,
  JIT_DOWNCAST_FP8 = SGL_JIT_OP_DOWNCAST_FP8,
  JIT_PER_TENSOR_QUANT_FP8 = SGL_JIT_OP_SGL_PER_TENSOR_QUANT_FP8,
  JIT_MERGE_STATE = SGL_JIT_OP_MERGE_STATE,
  JIT_HADAMARD = SGL_JIT_OP_HADAMARD_TRANSFORM,
  JIT_SEGMENT_PACKBITS = SGL_JIT_OP_SEGMENT_PACKBITS,
  JIT_SET_KV_BUFFER = SGL_JIT_OP_SET_KV_BUFFER_KERNEL,
  JIT_OPS
};
static inline bool jit_has_shape(enum jit_op op) {
  return op <= JIT_FUSED_A;
}

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

/* For messages: "float8_e4m3fn", "cuda:1". */
const char *jit_dtype_name(sgl_jit_dtype dtype);
struct jit_device_text {
  char text[32];
};
struct jit_device_text jit_device_text(const sgl_jit_tensor *t);

/* NULL, an operator that is not there, or a shape or output type that it does not take: what the operators would say of
 * tensors. */
sgl_jit_status jit_check_spec(const sgl_jit_kernel_spec *spec, struct jit_message m);

/* --- checks_bmm.c --- */

/* A checked call: output[b, m, n] = a_scale * b_scale * sum over k of a[b, m, k] * b[b, n, k], everything packed. */
struct jit_bmm {
  void *output, *workspace;
  const void *a, *b;
  const float *a_scale, *b_scale;
  size_t workspace_size;
  int batch, m, n, k; /* batch and m may be 0 */
  sgl_jit_dtype a_type, b_type, output_type;
  bool cuda;  /* else CPU */
  int device; /* CUDA ordinal */
};

sgl_jit_status jit_check_bmm(const sgl_jit_tensor *output, const sgl_jit_tensor *a, const sgl_jit_tensor *b,
                             const sgl_jit_tensor *a_scale, const sgl_jit_tensor *b_scale, void *workspace,
                             size_t workspace_size, struct jit_bmm *bmm, struct jit_message m);

/* --- spec.c --- */

/* "dsv3_router_gemm:256x7168:float32": operator, N x K, output type; of a kernel for every shape the operator alone. In
 * keys, in messages, and on sgl-jit's command line. */
struct jit_spec_text {
  char text[96];
};
struct jit_spec_text jit_spec_text(const sgl_jit_kernel_spec *spec);
/* The reverse; the fused GEMM's type, which is always bfloat16, may be left out. INVALID_ARGUMENT for another text, and
 * for a kernel that there cannot be. */
sgl_jit_status jit_spec_parse(const char *text, sgl_jit_kernel_spec *spec, struct jit_message m);

/* --- counters.c --- */

#define JIT_COUNTERS(X)                                                                                                \
  X(cache_hits)                                                                                                        \
  X(prebuilt_hits)                                                                                                     \
  X(cache_misses)                                                                                                      \
  X(bad_entries)                                                                                                       \
  X(compiles)                                                                                                          \
  X(compile_ns)                                                                                                        \
  X(loads)                                                                                                             \
  X(load_ns)                                                                                                           \
  X(bytes_read)                                                                                                        \
  X(bytes_written)                                                                                                     \
  X(waits)                                                                                                             \
  X(wait_ns)                                                                                                           \
  X(late_compiles)                                                                                                     \
  X(refused)

struct jit_counters {
#define JIT_COUNTER(name) _Atomic uint64_t name;
  JIT_COUNTERS(JIT_COUNTER)
#undef JIT_COUNTER
};
extern struct jit_counters jit_counters;
/* Of a clock that only goes forward. */
int64_t jit_now_ns(void);
#define jit_count(name, value)                                                                                         \
  ((void)atomic_fetch_add_explicit(&jit_counters.name, (uint64_t)(value), memory_order_relaxed))

/* --- numbers.c --- */

static inline double jit_from_bf16(uint16_t b) {
  union {
    uint32_t bits;
    float f;
  } value = {(uint32_t)b << 16};
  return (double)value.f;
}
uint16_t jit_to_bf16(double value);
uint16_t jit_to_fp16(double value);
double jit_from_e4m3(unsigned byte);
double jit_from_e5m2(unsigned byte);
/* Bytes; 0 of SGL_JIT_DTYPE_OTHER. */
size_t jit_element_size(sgl_jit_dtype dtype);

/* --- api.c, host.c --- */

/* SGL_JIT_OK: the chosen backend computes such tensors; the reference does. */
sgl_jit_status jit_check_backend(bool cuda, int device, struct jit_message m);
sgl_jit_status jit_check_cpu(bool cuda, int device, struct jit_message m);

/* --- reference.c --- */

void jit_reference_gemm(const struct jit_gemm *gemm);
void jit_reference_bmm(const struct jit_bmm *bmm);

/* --- driver.c --- */

typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUfunc_st *CUfunction; /* a CUkernel is passed as one, as the CUDA 12 driver allows */

/* CUlaunchConfig and CUlaunchAttribute. */
struct jit_launch_attribute {
  int id;
  char pad[4];
  union {
    char size[64];
    int number;
    struct jit_access_window { /* CUaccessPolicyWindow */
      const void *base;
      size_t bytes;
      float hit_ratio;
      int hit, miss;
    } window;
  } value;
};
struct jit_launch_config {
  unsigned grid[3], block[3], shared_bytes;
  CUstream stream;
  struct jit_launch_attribute *attributes;
  unsigned attribute_count;
};

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
  X(cuStreamIsCapturing, "cuStreamIsCapturing", (CUstream stream, int *status))                                        \
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (uint64_t to, uint64_t from, size_t size, CUstream stream))             \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *to, uint64_t from, size_t size, CUstream stream))                \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (uint64_t to, const void *from, size_t size, CUstream stream))          \
  X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream stream))                                                     \
  X(cuModuleLoadData, "cuModuleLoadData", (CUmodule * module, const void *image))                                      \
  X(cuModuleUnload, "cuModuleUnload", (CUmodule module))                                                               \
  X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction * function, CUmodule module, const char *name))            \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction function, int attribute, int value))                         \
  X(cuLaunchKernel, "cuLaunchKernel",                                                                                  \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,       \
     unsigned block_z, unsigned shared_bytes, CUstream stream, void **arguments, void **extra))
#define JIT_DRIVER_FUNCTIONS_12(X)                                                                                     \
  X(cuLaunchKernelEx, "cuLaunchKernelEx",                                                                              \
    (const struct jit_launch_config *config, CUfunction function, void **arguments, void **extra))                     \
  X(cuLibraryLoadData, "cuLibraryLoadData",                                                                            \
    (CUlibrary * library, const void *image, int *jit_options, void **jit_values, unsigned jit_count, int *options,    \
     void **values, unsigned count))                                                                                   \
  X(cuLibraryUnload, "cuLibraryUnload", (CUlibrary library))                                                           \
  X(cuLibraryGetKernel, "cuLibraryGetKernel", (CUfunction * kernel, CUlibrary library, const char *name))              \
  X(cuKernelGetFunction, "cuKernelGetFunction", (CUfunction * function, CUfunction kernel))                            \
  X(cuKernelSetAttribute, "cuKernelSetAttribute", (int attribute, int value, CUfunction kernel, CUdevice device))

struct jit_device {
  CUdevice handle;
  int major, minor;                       /* compute capability */
  int shared_bytes;                       /* what a block may have after opting in */
  size_t window_bytes;                    /* of memory whose lines a launch can tell the cache about; may be 0 */
  _Atomic(CUcontext) primary;             /* retained at first need, never released: gone after cudaDeviceReset */
  _Atomic(struct cublasLtContext *) blas; /* cuBLASLt's handle, made at first need, never destroyed */
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
  JIT_CUDA_DEVICE_WINDOW = 109,     /* CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE */
  JIT_CUDA_LAUNCH_WINDOW = 1,       /* CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW */
  JIT_CUDA_LAUNCH_PROGRAMMATIC = 6, /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
  JIT_CUDA_ACCESS_NORMAL = 0,
  JIT_CUDA_ACCESS_STREAMING = 1,
};

/* Forbidden because a stream is being captured. */
static inline bool jit_is_capture_error(CUresult error) {
  return error >= JIT_CUDA_CAPTURE_FIRST && error <= JIT_CUDA_CAPTURE_LAST;
}

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

/* One way to compute an operator: an entry point of its kernel text, and how it is launched: blocks x (the tokens of
 * the call / tokens, rounded up) blocks. */
struct jit_path {
  const char *entry;   /* paths may share one */
  int tokens;          /* that one block computes */
  int most;            /* chosen for calls of up to so many tokens; the last path for all the rest too */
  int blocks, threads; /* blocks is 0 where each call has its own number, as those of native.h */
  int shared;          /* bytes of a block */
  bool invariant;      /* the result of a token is the same to the bit in all invariant paths */
};

#define JIT_MAX_PATHS 12

/* How an operator is computed for one shape on one kind of device, whatever the number of tokens. */
struct jit_plan {
  struct jit_path
      paths[JIT_MAX_PATHS]; /* by rising number of tokens; those that need more shared memory are left out */
  int path_count;
  char options[12][32]; /* macro definitions for the kernel text */
  int option_count;
};

/* capability: 90 is 9.0. shared_limit: bytes that a block may have on the device. */
void jit_plan(enum jit_op op, int n, int k, bool output_f32, sgl_jit_pdl pdl, int capability, int shared_limit,
              struct jit_plan *plan);
/* The limit of a device that is not here. */
int jit_shared_limit(int capability);

/* --- kernel_text.c --- */

/* The kernel text of an operator, and the headers that it includes. */
const char *jit_kernel_text(enum jit_op op);
enum { JIT_MOST_HEADERS = 3 };
struct jit_headers {
  int count;
  const char *names[JIT_MOST_HEADERS], *texts[JIT_MOST_HEADERS];
};
const struct jit_headers *jit_kernel_headers(enum jit_op op);
/* "dsv3_router_gemm" */
const char *jit_op_name(enum jit_op op);

/* --- library_search.c, library.c --- */

/* A library of the CUDA toolkit. */
struct jit_library_name {
  const char *title;     /* "NVRTC", for people */
  const char *file;      /* "libnvrtc.so.", which the major version follows */
  const char *variable;  /* of the environment, that may name the file */
  const char *wheel;     /* its folder in Python packages for CUDA 12: nvidia/<wheel>/lib */
  sgl_jit_status status; /* when there is none ... */
  const char *missing;   /* ... and what to say then */
};

/* Told of every place: `path` is NULL and `problem` says why where a place has none; `problem` is NULL for the file
 * that was found, which is then loaded. */
typedef void jit_search_watch(void *user, const char *place, const char *path, const char *problem);

/* How one who searches looks at a file. */
struct jit_library_opener {
  /* The library; NULL, and then the reason in *problem, or NULL there as well: it just is not there. `loaded`: only
   * when the process has it already. */
  void *(*open)(void *user, const char *path, bool loaded, const char **problem);
  /* The folder of the CUDA runtime of the process. */
  bool (*runtime)(void *user, char *folder, size_t size);
  void *user;
};
extern const struct jit_library_name jit_library_nvrtc;
sgl_jit_status jit_library_search(const struct jit_library_name *name, int driver_version,
                                  const struct jit_library_opener *opener, void **library, jit_search_watch *watch,
                                  void *user, struct jit_message m);
/* The same with dlopen. */
sgl_jit_status jit_library_open(const struct jit_library_name *name, int driver_version, void **library,
                                jit_search_watch *watch, void *user, struct jit_message m);

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

/* NVRTC, found and loaded at first use. `driver_version` is 0 without a driver. */
sgl_jit_status jit_compiler(int driver_version, const struct jit_compiler **compiler, struct jit_message m);
/* The search alone, watched; what it finds is the one that jit_compiler takes. */
sgl_jit_status jit_compiler_search(int driver_version, jit_search_watch *watch, void *user, struct jit_message m);

enum { JIT_FACTS_TARGETS = 64 };
struct jit_compiler_facts {
  int major, minor;
  char path[4096], builtins[4096];              /* builtins "": not found, so that nothing can be compiled */
  struct jit_target targets[JIT_FACTS_TARGETS]; /* that it knows and the kernels run on */
  int target_count;
};
void jit_compiler_facts(const struct jit_compiler *compiler, struct jit_compiler_facts *facts);
/* The device's own target, whatever the compiler. */
struct jit_target jit_target_exact(int major, int minor);
/* The reverse; false for what is no device's own target. */
bool jit_target_parse(const char *name, int *major, int *minor);
/* The number in a name: 90 of "sm_90a", and of "sm_90" and "compute_90", which older compilers have in its place. */
int jit_target_capability(const char *name);
/* The best target for the device that the compiler knows. */
struct jit_target jit_target_for(const struct jit_compiler *compiler, int major, int minor);
sgl_jit_status jit_compile(const struct jit_compiler *compiler, enum jit_op op, const struct jit_plan *plan,
                           const struct jit_target *target, struct jit_image *image, struct jit_message m);

/* --- cache_folder.c --- */

/* The folders of compiled kernels, in the order in which they are searched. */
enum jit_folder_kind {
  JIT_FOLDER_CACHE,    /* of the user, read and written */
  JIT_FOLDER_PREBUILT, /* shipped beside the library, only read */
  JIT_FOLDER_COUNT
};

struct jit_folder {
  enum jit_folder_kind kind;
  char path[4096];    /* "": there is none, and `problem` says why */
  const char *source; /* what it comes from: "SGL_KERNEL_JIT_CACHE_DIR", "HOME", "the library's folder", ... */
  bool missing;       /* after opening: it does not exist; the cache is made when something is written */
  char problem[256];  /* after opening: why it is not used; "" when it is, or is only missing */
  uid_t owners[3];    /* whose files are believed */
  int owner_count;
  bool unnoticed; /* to be set by who only looks: reading an entry then is no use of it, for the file's access time */
};

/* The library's file, whose folder has the prebuilt one: NULL is the file that this code is in. For sgl-jit, which has
 * the code, but is not the library. */
extern const char *jit_library_file;

/* Path, source and owners, from the environment alone: nothing is opened. */
void jit_folder_find(enum jit_folder_kind kind, struct jit_folder *folder);
/* A descriptor of the folder, or -1 where there is none or none to be trusted: see `missing` and `problem`. `create`
 * makes the cache folder; the prebuilt one is never made. */
int jit_folder_open(struct jit_folder *folder, bool create);
/* May files of this user be believed? */
bool jit_folder_is_owner(const struct jit_folder *folder, uid_t user);
/* All folders, found and looked at. */
void jit_cache_folders(struct jit_folder folders[JIT_FOLDER_COUNT]);

/* --- cache_file.c --- */

/* Names of the files that are no entries. Both may be left behind by a process that was killed, and harm nobody. */
#define JIT_TEMPORARY_PREFIX ".new-" /* an entry that is being written; may be removed when it is an hour old */
#define JIT_LOCK_PREFIX ".lock-"     /* see cache_lock.c; may be removed by who holds its lock */

enum jit_file_kind { JIT_FILE_ENTRY, JIT_FILE_TEMPORARY, JIT_FILE_LOCK, JIT_FILE_OTHER };

struct jit_file {
  char name[256];
  enum jit_file_kind kind; /* by its name */
  struct stat stat;        /* of a link: the link's own */
};

/* for (DIR *list = jit_folder_list(opened); list && jit_folder_next(list, &file);) ...; closedir(list) */
DIR *jit_folder_list(int opened);
bool jit_folder_next(DIR *list, struct jit_file *file);

/* The key of an entry is text, a line for each fact that the image depends on: "kernel
 * dsv3_router_gemm:256x7168:float32", "target sm_90a", "options ...". Gives the rest of the line that begins with the
 * field's name. */
bool jit_key_field(const char *key, const char *field, char *value, size_t size);

/* "dsv3_router_gemm-<hash of the key>" */
struct jit_entry_name {
  char text[192];
};
void jit_entry_name(const char *key, struct jit_entry_name *name);

struct jit_entry {
  char *key; /* malloc, as the image */
  struct jit_image image;
  size_t file_size;
};
void jit_entry_free(struct jit_entry *entry);

enum jit_entry_fault {
  JIT_ENTRY_GOOD,
  JIT_ENTRY_MISSING,
  JIT_ENTRY_UNREADABLE,
  JIT_ENTRY_LINK,
  JIT_ENTRY_NO_FILE, /* a folder, a fifo ... */
  JIT_ENTRY_OWNER,
  JIT_ENTRY_WRITABLE,
  JIT_ENTRY_FOREIGN, /* not this format */
  JIT_ENTRY_TRUNCATED,
  JIT_ENTRY_CHECKSUM,
  JIT_ENTRY_RENAMED, /* whole, but its name is not that of its key */
};
/* "truncated" */
const char *jit_entry_fault_text(enum jit_entry_fault fault);

/* The bytes of an entry (malloc), or NULL: out of memory, or an image of more than 64 MiB. */
char *jit_entry_encode(const char *key, const struct jit_image *image, size_t *size);
/* GOOD fills `entry`, which the caller frees; every other answer leaves it empty. */
enum jit_entry_fault jit_entry_decode(const char *content, size_t size, struct jit_entry *entry);
enum jit_entry_fault jit_entry_read(const struct jit_folder *folder, int opened, const char *name,
                                    struct jit_entry *entry);

/* --- cache.c --- */

/* `key` is all that the image depends on: kernel texts, options, target, the ABI of the parameters. The compiler's
 * version is not part of it: whichever compiled an entry, it computes what the texts say, and to learn the installed
 * one's version it would have to be opened, which costs more than all the rest of a warm start. So an entry outlives a
 * newer NVRTC: it is replaced when the driver refuses it, or by hand, when the folder is removed. */

/* MISSING also where there is no folder, or none to be trusted. */
enum jit_entry_fault jit_cache_read(enum jit_folder_kind kind, const char *key, struct jit_image *image);
/* Into the cache folder. To most callers an error is none: what cannot be written is not kept. */
sgl_jit_status jit_cache_write(const char *key, const struct jit_image *image, struct jit_message m);

/* --- cache_lock.c --- */

/* The right to compile an entry, for one process at a time: to be given back, or -1 where there is no lock to be had
 * (no folder, no such file system, or another process did not give it up in time), which forbids nothing. Look into the
 * cache again afterwards. One thread of the process at a time for one key. */
int jit_cache_lock(const char *key, int wait_ms);
void jit_cache_unlock(int lock);

/* --- monitor.c --- */

/* Before a compile that nobody asked for. SGL_JIT_OK: it may be done. */
sgl_jit_status jit_monitor(const sgl_jit_kernel_spec *spec, const char *target, int device, struct jit_message m);

/* --- kernels.c --- */

struct jit_kernel_key {
  CUcontext context; /* NULL where kernels belong to no context */
  enum jit_op op;
  int n, k;
  int device;
  bool output_f32;
  sgl_jit_pdl pdl;
};

/* A loaded kernel: immutable once found. Or, with status not SGL_JIT_OK, why there never will be one. */
struct jit_kernel {
  struct jit_kernel_key key;
  sgl_jit_status status;
  char *message;
  struct jit_plan plan;
  CUfunction functions[JIT_MAX_PATHS];
  bool unfit; /* the driver refused the code itself, and would again; other refusals may pass */
  struct jit_kernel *next;
};

/* The kernel for a key: one lookup without a lock, at first use loaded from the cache or compiled. The device's context
 * is current. `asked`: a compile is what the caller wants, and no business of the monitor. */
sgl_jit_status jit_kernel(const struct jit_driver *driver, const struct jit_device *device,
                          const struct jit_kernel_key *key, bool asked, const struct jit_kernel **kernel,
                          struct jit_message m);
/* jit_plan of a kernel that is named, as all below, for devices of the target; and all below for the mode of
 * programmatic dependent launch that is set in this process, unless one is given. */
void jit_spec_plan(const sgl_jit_kernel_spec *spec, const struct jit_target *target, sgl_jit_pdl pdl,
                   struct jit_plan *plan);
struct jit_cache_key {
  char text[768];
};
/* The key of the entry that serves a kernel on devices of a target. */
struct jit_cache_key jit_cache_key(const sgl_jit_kernel_spec *spec, const struct jit_target *target, sgl_jit_pdl pdl);
/* Compiles a kernel, whatever the caches have. No driver, no device. */
sgl_jit_status jit_kernel_image(const sgl_jit_kernel_spec *spec, const struct jit_target *target,
                                struct jit_image *image, struct jit_message m);
/* Compiles into the cache folder what is not there yet. No driver, no device. */
sgl_jit_status jit_kernel_to_cache(const sgl_jit_kernel_spec *spec, const struct jit_target *target,
                                   struct jit_message m);

/* --- setting.c --- */

/* Beside the values of the enumeration, which are the indices of their names: not looked at yet, and a name that there
 * is not. */
enum { JIT_SETTING_UNREAD = -1, JIT_SETTING_INVALID = -2 };
/* Reads the variable, unless a function has set the setting meanwhile; `unset` is for a missing or empty one. */
int jit_setting_first(atomic_int *setting, const char *variable, const char *const names[], int count, int unset);

/* --- modes.c --- */

/* How calls are computed: bits of the word that jit_modes gives, which one relaxed load reads after the first. */
enum {
  JIT_MODE_READ = 1,      /* the environment has been looked at */
  JIT_MODE_INVARIANT = 2, /* invariant paths only */
  JIT_MODE_PDL = 4,       /* launched to overlap with the kernel before */
  JIT_MODE_EARLY = 8,     /* and weights may be fetched before that one ends */
  /* A variable has a value that it cannot have, and no function has said what is wanted in its place. */
  JIT_MODE_BAD_INVARIANT = 16,
  JIT_MODE_BAD_PREFETCH = 32,
  JIT_MODE_INVALID = JIT_MODE_BAD_INVARIANT | JIT_MODE_BAD_PREFETCH
};
extern atomic_int jit_modes_word;
int jit_modes_first(void);
static inline int jit_modes(void) {
  int modes = atomic_load_explicit(&jit_modes_word, memory_order_relaxed);
  return modes ? modes : jit_modes_first();
}
/* The mode that kernels for such devices are compiled and launched for. */
sgl_jit_pdl jit_pdl_on(int capability);

/* --- launch.c --- */

enum { JIT_MIN_MAJOR = 8 }; /* bfloat16 tensor cores and conversions came with compute capability 8.0 */

sgl_jit_status jit_launch_gemm(const struct jit_gemm *gemm, void *stream, struct jit_message m);
/* The same without the launch. */
sgl_jit_status jit_warm_kernel(const sgl_jit_kernel_spec *spec, int device, struct jit_message m);

/* What a call needs: the driver, the device, and a context of it, which the caller has to leave (jit_context_leave). */
struct jit_place {
  const struct jit_driver *driver;
  struct jit_device *device;
  struct jit_context context;
};
sgl_jit_status jit_enter(int ordinal, struct jit_place *place, struct jit_message m);

/* --- cublaslt.c --- */

typedef int cublasStatus_t;
typedef struct cublasLtContext *cublasLtHandle_t;

/* Descriptors in the caller's memory, as large as in cublasLt.h of CUDA 13 (cublasLtMatmulDescOpaque_t ...): the
 * library is told the size, and fills in what it knows. In CUDA 12.1 the first one was smaller. */
struct jit_blas_desc {
  uint64_t data[32];
};
struct jit_blas_layout {
  uint64_t data[8];
};
struct jit_blas_preference {
  uint64_t data[8];
};
struct jit_blas_algorithm {
  uint64_t data[8];
};
/* cublasLtMatmulHeuristicResult_t */
struct jit_blas_result {
  struct jit_blas_algorithm algorithm;
  size_t workspace_size;
  cublasStatus_t state;
  float waves;
  int reserved[4];
};

/* cublasLtMatmulDescInit and its like are inline functions of cublasLt.h around the ones named here. */
#define JIT_BLAS_FUNCTIONS(X)                                                                                          \
  X(cublasLtGetVersion, size_t, (void))                                                                                \
  X(cublasLtGetStatusName, const char *, (cublasStatus_t status))                                                      \
  X(cublasLtCreate, cublasStatus_t, (cublasLtHandle_t * handle))                                                       \
  X(cublasLtMatmulDescInit_internal, cublasStatus_t,                                                                   \
    (struct jit_blas_desc * desc, size_t size, int compute_type, int scale_type))                                      \
  X(cublasLtMatmulDescSetAttribute, cublasStatus_t,                                                                    \
    (struct jit_blas_desc * desc, int attribute, const void *value, size_t size))                                      \
  X(cublasLtMatrixLayoutInit_internal, cublasStatus_t,                                                                 \
    (struct jit_blas_layout * layout, size_t size, int type, uint64_t rows, uint64_t columns, int64_t leading))        \
  X(cublasLtMatrixLayoutSetAttribute, cublasStatus_t,                                                                  \
    (struct jit_blas_layout * layout, int attribute, const void *value, size_t size))                                  \
  X(cublasLtMatmulPreferenceInit_internal, cublasStatus_t, (struct jit_blas_preference * preference, size_t size))     \
  X(cublasLtMatmulPreferenceSetAttribute, cublasStatus_t,                                                              \
    (struct jit_blas_preference * preference, int attribute, const void *value, size_t size))                          \
  X(cublasLtMatmulAlgoGetHeuristic, cublasStatus_t,                                                                    \
    (cublasLtHandle_t handle, const struct jit_blas_desc *desc, const struct jit_blas_layout *a,                       \
     const struct jit_blas_layout *b, const struct jit_blas_layout *c, const struct jit_blas_layout *d,                \
     const struct jit_blas_preference *preference, int wanted, struct jit_blas_result *results, int *count))           \
  X(cublasLtMatmul, cublasStatus_t,                                                                                    \
    (cublasLtHandle_t handle, const struct jit_blas_desc *desc, const void *alpha, const void *a,                      \
     const struct jit_blas_layout *a_layout, const void *b, const struct jit_blas_layout *b_layout, const void *beta,  \
     const void *c, const struct jit_blas_layout *c_layout, void *d, const struct jit_blas_layout *d_layout,           \
     const struct jit_blas_algorithm *algorithm, void *workspace, size_t workspace_size, CUstream stream))

struct jit_blas {
#define JIT_POINTER(name, result, parameters) result(*name) parameters;
  JIT_BLAS_FUNCTIONS(JIT_POINTER)
#undef JIT_POINTER
};

/* Numbers from cublas_api.h (cublasStatus_t), which the build does not need. */
enum {
  JIT_BLAS_NOT_INITIALIZED = 1,
  JIT_BLAS_ALLOC_FAILED = 3,
  JIT_BLAS_INVALID_VALUE = 7,
  JIT_BLAS_ARCH_MISMATCH = 8,
  JIT_BLAS_EXECUTION_FAILED = 13,
  JIT_BLAS_INTERNAL_ERROR = 14,
  JIT_BLAS_NOT_SUPPORTED = 15
};

/* cuBLASLt, found and loaded at first use; `driver_version` is 0 without a driver. */
sgl_jit_status jit_blas(int driver_version, const struct jit_blas **blas, struct jit_message m);
/* The search alone, watched; what it finds is the one that jit_blas takes. */
sgl_jit_status jit_blas_search(int driver_version, jit_search_watch *watch, void *user, struct jit_message m);

struct jit_blas_facts {
  char version[32], path[4096];
};
void jit_blas_facts(const struct jit_blas *blas, struct jit_blas_facts *facts);
/* "CUBLAS_STATUS_NOT_SUPPORTED" */
const char *jit_blas_error(const struct jit_blas *blas, cublasStatus_t status);

/* --- bmm.c --- */

enum { JIT_FP8_CAPABILITY = 89 }; /* cublasLtMatmul: FP8 kernels need compute capability 8.9 */

sgl_jit_status jit_launch_bmm(const struct jit_bmm *bmm, void *stream, struct jit_message m);

#endif
