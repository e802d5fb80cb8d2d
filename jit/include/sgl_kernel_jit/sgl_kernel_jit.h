/* sgl_kernel_jit: the two DeepSeek-V3 decode GEMMs as just-in-time kernels. Public C interface of libsgl_kernel_jit.so.
 *
 * Thread rules: every function may be called from any thread at any time unless its comment says otherwise.
 * Errors: functions return a status with a stable number and, when it is not SGL_JIT_OK, write one line without a final
 * newline into the caller's `message` buffer (always NUL-ended, truncated to message_size; NULL and 0 are allowed).
 * The library never prints, never aborts, and leaves errno and the current CUDA context as it found them.
 *
 * CUDA: compute capability 8.0 or newer. The result of a token does not depend on the number of tokens and is the same
 * in every run. The first use of a shape on a device compiles its kernel (NVRTC 12.0 or newer, half a second) or reads
 * it from the cache; later uses only launch. Capturable in a CUDA graph; call once with the shape before the capture
 * where the driver refuses to load code in one. A child of fork gets SGL_JIT_ERROR_NO_DRIVER if its parent had used
 * CUDA here. Kernels, and primary contexts where none was current, are kept until the process ends: a device that was
 * used here must not be reset (cudaDeviceReset, cuDevicePrimaryCtxReset), later calls on it may fail.
 *
 * Environment, read at first need (not by set-user-ID programs):
 *   SGL_KERNEL_JIT_BACKEND    auto | reference, see below
 *   SGL_KERNEL_JIT_NVRTC      the libnvrtc.so to use; otherwise one that is loaded, one beside the loaded CUDA runtime,
 *                             libnvrtc.so.13 or .12 by name, CUDA_HOME, CUDA_PATH, /usr/local/cuda*
 *   SGL_KERNEL_JIT_CACHE_DIR  folder of compiled kernels; otherwise XDG_CACHE_HOME/sgl-kernel-jit, else
 *                             HOME/.cache/sgl-kernel-jit. Used only if the path is absolute, the folder belongs to the
 *                             effective user and nobody else may write it; without one, kernels are kept in memory. To
 *                             have all kernels compiled anew, as by a newer NVRTC, remove it: it may go at any time. */
#ifndef SGL_KERNEL_JIT_H
#define SGL_KERNEL_JIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SGL_JIT_VERSION_MAJOR 0
#define SGL_JIT_VERSION_MINOR 1
#define SGL_JIT_VERSION_PATCH 0

#if defined(SGL_JIT_BUILDING)
#define SGL_JIT_API __attribute__((visibility("default")))
#else
#define SGL_JIT_API
#endif

/* Numbers are part of the ABI: never reused, never renumbered. */
typedef enum sgl_jit_status {
  SGL_JIT_OK = 0,
  SGL_JIT_ERROR_INVALID_ARGUMENT =
      1,                         /* shape, dtype, stride, alignment, device or NULL: the message names the argument */
  SGL_JIT_ERROR_UNSUPPORTED = 2, /* legal, but not here: device too old, CPU tensors without the reference backend */
  SGL_JIT_ERROR_NO_DRIVER = 3,   /* libcuda.so.1 missing, unusable, or no device */
  SGL_JIT_ERROR_NO_COMPILER = 4, /* NVRTC missing or too old, and no usable cached kernel */
  SGL_JIT_ERROR_COMPILE = 5,     /* NVRTC refused the kernel: the message carries its first log line */
  SGL_JIT_ERROR_LOAD = 6,        /* the driver refused the module */
  SGL_JIT_ERROR_LAUNCH = 7,      /* the driver refused the launch, or an earlier asynchronous error surfaced */
  SGL_JIT_ERROR_OUT_OF_MEMORY = 8,
  SGL_JIT_ERROR_CAPTURE = 9, /* first use inside a stream capture, and the driver forbids loading code there */
  SGL_JIT_ERROR_INTERNAL = 10
} sgl_jit_status;

typedef enum sgl_jit_dtype {
  SGL_JIT_DTYPE_OTHER = 0, /* a dtype that no kernel here takes: for callers that translate foreign tensors */
  SGL_JIT_DTYPE_FLOAT32 = 1,
  SGL_JIT_DTYPE_BFLOAT16 = 2
} sgl_jit_dtype;

typedef enum sgl_jit_device_type {
  SGL_JIT_DEVICE_OTHER = 0,
  SGL_JIT_DEVICE_CPU = 1,
  SGL_JIT_DEVICE_CUDA = 2
} sgl_jit_device_type;

/* A borrowed view of a tensor. The library reads it during the call only and keeps nothing of it. */
typedef struct sgl_jit_tensor {
  void *data; /* first element, storage offset included; may be NULL when a size is 0 */
  sgl_jit_dtype dtype;
  sgl_jit_device_type device_type;
  int32_t device_index; /* CUDA ordinal; ignored for the CPU */
  int32_t ndim;
  const int64_t *sizes;   /* ndim values */
  const int64_t *strides; /* ndim values, in elements */
} sgl_jit_tensor;

/* Which code computes. AUTO: CUDA tensors run on their device, CPU tensors are an error. REFERENCE: CPU tensors are
 * computed in plain C with double accumulation; CUDA tensors are an error. The initial value comes from the environment
 * variable SGL_KERNEL_JIT_BACKEND (auto | reference), read once at first use; sgl_jit_set_backend overrides it. */
typedef enum sgl_jit_backend { SGL_JIT_BACKEND_AUTO = 0, SGL_JIT_BACKEND_REFERENCE = 1 } sgl_jit_backend;

SGL_JIT_API sgl_jit_status sgl_jit_set_backend(sgl_jit_backend backend, char *message, size_t message_size);
SGL_JIT_API sgl_jit_backend sgl_jit_get_backend(void);

/* "0.1.0" and the name of a status ("SGL_JIT_ERROR_COMPILE"); static strings. */
SGL_JIT_API const char *sgl_jit_version(void);
SGL_JIT_API const char *sgl_jit_status_name(sgl_jit_status status);

/* output[m, n] = sum over k of hidden_states[m, k] * router_weights[n, k].
 *
 *   output          [num_tokens, num_experts]  float32 or bfloat16, row-major, packed (strides num_experts, 1)
 *   hidden_states   [num_tokens, hidden_dim]   bfloat16, row-major, packed (strides hidden_dim, 1)
 *   router_weights  [num_experts, hidden_dim]  bfloat16, row-major, packed (strides hidden_dim, 1)
 *
 * num_tokens 0..64 (0 is a no-op), num_experts a multiple of 8 up to 1024, hidden_dim a multiple of 256 up to 2^24. The
 * stride of a dimension of size 1 does not count. All three on one device, data 16-byte aligned. output must
 * not overlap an input. stream: CUstream of that device, NULL is the default stream; ignored on the CPU. Asynchronous
 * on CUDA. */
SGL_JIT_API sgl_jit_status sgl_jit_dsv3_router_gemm(const sgl_jit_tensor *output, const sgl_jit_tensor *hidden_states,
                                                    const sgl_jit_tensor *router_weights, void *stream, char *message,
                                                    size_t message_size);

/* output[m, n] = sum over k of mat_a[m, k] * mat_b[k, n].
 *
 *   output  [num_tokens, hd_out]  bfloat16, row-major, packed (strides hd_out, 1)
 *   mat_a   [num_tokens, hd_in]   bfloat16, row-major, packed (strides hd_in, 1)
 *   mat_b   [hd_in, hd_out]       bfloat16, column-major, packed (strides 1, hd_in): the transposed view of a row-major
 *                                 weight [hd_out, hd_in]
 *
 * num_tokens 0..64 (0 is a no-op), hd_in a multiple of 256 and hd_out a multiple of 16, both up to 2^24. Everything
 * else as above. */
SGL_JIT_API sgl_jit_status sgl_jit_dsv3_fused_a_gemm(const sgl_jit_tensor *output, const sgl_jit_tensor *mat_a,
                                                     const sgl_jit_tensor *mat_b, void *stream, char *message,
                                                     size_t message_size);

#ifdef __cplusplus
}
#endif

#endif
