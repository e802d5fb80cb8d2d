/* sgl_kernel_jit: the two DeepSeek-V3 decode GEMMs and some small operators as just-in-time kernels, and the batched
 * FP8 product through cuBLASLt. Public C interface of libsgl_kernel_jit.so.
 *
 * Thread rules: every function may be called from any thread at any time unless its comment says otherwise.
 * Errors: functions return a status with a stable number and, when it is not SGL_JIT_OK, write one line without a final
 * newline into the caller's `message` buffer (always NUL-ended, truncated to message_size; NULL and 0 are allowed).
 * The library prints nothing but what sgl_jit_set_monitor says, never aborts, and leaves errno and the current CUDA
 * context as it found them.
 *
 * CUDA: compute capability 8.0 or newer. A result is the same to the bit in every run; see sgl_jit_set_batch_invariant
 * for results of different numbers of tokens. The first use of a shape on a device compiles its kernel (NVRTC 12.1 or
 * newer, a third of a second) or reads it from the cache; later uses only launch. Capturable in a CUDA graph; call once
 * with the shape before the capture where the driver refuses to load code in one. A child of fork gets
 * SGL_JIT_ERROR_NO_DRIVER if its parent had used CUDA here. Kernels, and primary contexts where none was current, are
 * kept until the process ends: a device that was used here must not be reset (cudaDeviceReset,
 * cuDevicePrimaryCtxReset), later calls on it may fail.
 *
 * Environment, read at first need (not by set-user-ID programs):
 *   SGL_KERNEL_JIT_BACKEND    auto | reference, see below
 *   SGL_KERNEL_JIT_NVRTC      the libnvrtc.so to use; otherwise one that is loaded, one beside the loaded CUDA runtime,
 *                             libnvrtc.so.13 or .12 by name, CUDA_HOME, CUDA_PATH, /usr/local/cuda*
 *   SGL_KERNEL_JIT_CUBLASLT   the libcublasLt.so to use for bmm_fp8; otherwise looked for like NVRTC
 *   SGL_KERNEL_JIT_CACHE_DIR  folder of compiled kernels; otherwise XDG_CACHE_HOME/sgl-kernel-jit, else
 *                             HOME/.cache/sgl-kernel-jit. Used only if the path is absolute, the folder is no symbolic
 *                             link, belongs to the effective user and nobody else may write it (those above it may be
 *                             links); without one, kernels are kept in memory. Of
 *                             processes that need a kernel at the same time one compiles, the others wait (at most
 *                             30 s). To have all kernels compiled anew, as by a newer NVRTC, remove the folder: it may
 *                             go at any time.
 *   SGL_KERNEL_JIT_PREBUILT_DIR  folder of kernels that were compiled elsewhere (sgl-jit pack); otherwise
 *                             sgl-kernel-jit-cubins beside this library's file. Looked at after the cache, never
 *                             written. Used only if the path is absolute, the folder is no symbolic link, belongs to
 *                             root, the effective user or the owner of this library's file, and nobody else may write
 *                             it.
 *   SGL_KERNEL_JIT_MONITOR    off | warn | error, see sgl_jit_set_monitor
 *   SGL_KERNEL_JIT_BATCH_INVARIANT  0 | 1, see sgl_jit_set_batch_invariant
 *   TRTLLM_ENABLE_PDL, SGL_KERNEL_JIT_PDL_PREFETCH  1, 0 | 1, see sgl_jit_set_pdl */
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
  SGL_JIT_ERROR_INTERNAL = 10,
  SGL_JIT_ERROR_CACHE = 11,   /* sgl_jit_compile could not write the entry */
  SGL_JIT_ERROR_REFUSED = 12, /* the monitor is on error, and this would have been a compile after sgl_jit_warm_done */
  SGL_JIT_ERROR_NO_CUBLASLT = 13 /* cuBLASLt missing, too old, or it does not start on the device */
} sgl_jit_status;

typedef enum sgl_jit_dtype {
  SGL_JIT_DTYPE_OTHER = 0, /* a dtype that no kernel here takes: for callers that translate foreign tensors */
  SGL_JIT_DTYPE_FLOAT32 = 1,
  SGL_JIT_DTYPE_BFLOAT16 = 2,
  SGL_JIT_DTYPE_FLOAT16 = 3,       /* IEEE binary16 */
  SGL_JIT_DTYPE_FLOAT8_E4M3FN = 4, /* OCP E4M3: no infinity, 448 is the largest; torch.float8_e4m3fn */
  SGL_JIT_DTYPE_FLOAT8_E5M2 = 5,   /* OCP E5M2: torch.float8_e5m2 */
  SGL_JIT_DTYPE_INT32 = 6,
  SGL_JIT_DTYPE_INT64 = 7,
  SGL_JIT_DTYPE_UINT8 = 8,
  SGL_JIT_DTYPE_BOOL = 9 /* a byte, 0 or 1: torch.bool */
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

/* Batch invariance. Off, which path computes a call depends on its number of tokens: of one and two tokens the router's
 * results may differ in the last bits from those of the same tokens in a larger call. On, there is one path for all
 * numbers of tokens, and the result of a token does not depend on them. dsv3_fused_a_gemm always is so. The initial
 * value comes from the environment variable SGL_KERNEL_JIT_BATCH_INVARIANT (0 | 1), read once at first use; with
 * another value every launch is an INVALID_ARGUMENT error, until this function is called. on: 0 or 1. */
SGL_JIT_API sgl_jit_status sgl_jit_set_batch_invariant(int on, char *message, size_t message_size);
SGL_JIT_API int sgl_jit_get_batch_invariant(void);

/* Programmatic dependent launch (compute capability 9.0, CUDA 12.0): a kernel starts before the one that was launched
 * before it on the stream ends, and waits for its end before it reads hidden_states or mat_a, or writes anything. ON
 * fetches weights before that wait: they must not be written by the kernel before, nor by an earlier one that may still
 * run, which it may if a kernel between lets the next one start before it has waited itself (the kernels here do not).
 * NO_PREFETCH waits first. The initial value is ON if the environment variable TRTLLM_ENABLE_PDL is exactly 1 (the
 * deleted kernels' rule), else OFF; NO_PREFETCH if SGL_KERNEL_JIT_PDL_PREFETCH (0 | 1) is 0 too; with another value of
 * that one it is as above. Kernels are compiled for one mode, also by sgl_jit_warm and sgl_jit_compile: after a change
 * the next call of each loads or compiles others. */
typedef enum sgl_jit_pdl { SGL_JIT_PDL_OFF = 0, SGL_JIT_PDL_ON = 1, SGL_JIT_PDL_NO_PREFETCH = 2 } sgl_jit_pdl;

SGL_JIT_API sgl_jit_status sgl_jit_set_pdl(sgl_jit_pdl mode, char *message, size_t message_size);
SGL_JIT_API sgl_jit_pdl sgl_jit_get_pdl(void);

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

/* output[b, m, n] = A_scale * B_scale * sum over k of A[b, m, k] * B[b, k, n], through cuBLASLt, as the deleted kernel.
 *
 *   output   [batch, m, n]  bfloat16 or float16, row-major, packed (strides m * n, n, 1)
 *   A        [batch, m, k]  float8_e4m3fn or float8_e5m2, row-major, packed (strides m * k, k, 1)
 *   B        [batch, k, n]  float8_e4m3fn or float8_e5m2, each matrix column-major, packed (strides k * n, 1, k): the
 *                           transposed view of contiguous [batch, n, k] weights. Not e5m2 if A is: cuBLASLt has no such
 *                           product
 *   A_scale, B_scale        float32, one element, whatever the number of dimensions; read on the device
 *
 * k a positive multiple of 16 and n one of 8, as cuBLASLt's FP8 kernels need (cublasLtMatmul: rows of 16 bytes); all
 * sizes up to 2^31 - 1; batch and m may be 0 (a no-op). The stride of a dimension of size 1 does not count. All on one
 * device of compute capability 8.9 or newer; data of output, A and B 16-byte aligned, of the scales 4. output must not
 * overlap an argument. cuBLASLt 12.9 and newer refuse a scale that is not 16-byte aligned: it is then copied into the
 * first 256 bytes of the workspace, or SGL_JIT_ERROR_UNSUPPORTED where there are none.
 *
 * workspace: device memory for cuBLASLt, 256-byte aligned (cublasLtMatmul), workspace_size its bytes, or NULL and 0. A
 * smaller one leaves cuBLASLt fewer algorithms; the deleted kernel had 32 MiB. It is in use until the work on `stream`
 * is done: calls that may overlap, on different streams, need one each. Not read on the CPU.
 *
 * Accumulation is cuBLASLt's fast one (CUBLASLT_MATMUL_DESC_FAST_ACCUM), as in the deleted kernel: below float32 on
 * compute capability 9.0. Which algorithm computes, and so the last bits, depends on sizes, alignment, workspace_size
 * and cuBLASLt's version; sgl_jit_set_batch_invariant and sgl_jit_set_pdl do not change that.
 *
 * The first use of a device creates a cuBLASLt handle on it, which allocates and is kept until the process ends. The
 * first use of a shape asks cuBLASLt for an algorithm and may load its code; the answers for the first 4096 shapes of
 * the process are remembered, and such a call takes no lock here. Either may come in a stream capture: it is done with
 * the thread's capture mode relaxed, and where CUDA forbids it all the same the call returns SGL_JIT_ERROR_CAPTURE
 * and the capture may be lost; call once with the shape before. The graph keeps using the workspace and the scales.
 *
 * cuBLASLt 12.0 or newer is found at run time: SGL_JIT_ERROR_NO_CUBLASLT. SGL_JIT_ERROR_UNSUPPORTED also when cuBLASLt
 * has no algorithm for the product. stream and everything else as above. */
SGL_JIT_API sgl_jit_status sgl_jit_bmm_fp8(const sgl_jit_tensor *output, const sgl_jit_tensor *A,
                                           const sgl_jit_tensor *B, const sgl_jit_tensor *A_scale,
                                           const sgl_jit_tensor *B_scale, void *workspace, size_t workspace_size,
                                           void *stream, char *message, size_t message_size);

/* --- operators with one kernel for every shape --- */

/* Of each: tensors are contiguous unless it says otherwise (the strides of dimensions of size 1 do not count), all on
 * one device, and start at a multiple of their element's size. Outputs must not overlap other arguments. Faster where
 * data is 16-byte aligned and rows are a multiple of 16 bytes. No tensor of no elements has work; nothing is written
 * then. stream and everything else as above. Indices in tensors are read on the device, and cannot be an error there:
 * what would be written outside of an output is not written. The CPU reference returns SGL_JIT_ERROR_INVALID_ARGUMENT
 * for it. */

/* k_out[loc[t] * mult + offset] = float8_e4m3fn(k[t] / k_scale) for each token t, and the same of v, as bytes.
 *
 *   k, v              [tokens, heads, dim]  bfloat16 or float16, of one dtype and of the same sizes
 *   k_out, v_out      float8_e4m3fn or uint8, of one dtype and of the same sizes, whatever they are: slots of
 *                     heads * dim elements
 *   k_scale, v_scale  float32, one element
 *   loc               int64 [tokens] or longer; two tokens of one slot leave either
 *
 * The division is made in the dtype of k, as the deleted kernel made it: by 1 / k_scale, where the scale, its inverse
 * and the product each are rounded to that dtype. Beyond 448 it is 448; a NaN stays a NaN. */
SGL_JIT_API sgl_jit_status sgl_jit_downcast_fp8(const sgl_jit_tensor *k, const sgl_jit_tensor *v,
                                                const sgl_jit_tensor *k_out, const sgl_jit_tensor *v_out,
                                                const sgl_jit_tensor *k_scale, const sgl_jit_tensor *v_scale,
                                                const sgl_jit_tensor *loc, int64_t mult, int64_t offset, void *stream,
                                                char *message, size_t message_size);

/* output_q = float8_e4m3fn(input * (1 / output_s)), in float32, with one scale for the whole tensor.
 *
 *   input     float32, bfloat16 or float16, any sizes
 *   output_q  float8_e4m3fn or uint8, as many elements
 *   output_s  float32, one element
 *
 * is_static: 0 makes the scale, output_s = max(output_s, the greatest absolute value of input / 448): set it to 0
 * before, as the deleted kernel asked its callers to. Else output_s is read as it is. NaNs in the input do not count
 * for the scale, and become 448; so does a zero where the scale is 0. The same to the bit on every device. */
SGL_JIT_API sgl_jit_status sgl_jit_sgl_per_tensor_quant_fp8(const sgl_jit_tensor *input, const sgl_jit_tensor *output_q,
                                                            const sgl_jit_tensor *output_s, int is_static, void *stream,
                                                            char *message, size_t message_size);

/* v_merged = v_a * 2^(s_a - s) + v_b * 2^(s_b - s) with s = log2(2^s_a + 2^s_b), which s_merged gets: two partial
 * results of attention made one. Logarithms are of base 2, not natural ones.
 *
 *   v_a, v_b, v_merged  [tokens, heads, dim]  bfloat16 or float16, all of one dtype
 *   s_a, s_b, s_merged  [tokens, heads]       float32
 *
 * v_merged may be v_a or v_b itself, s_merged s_a or s_b. Where both s are -infinity, or one is +infinity, all is NaN,
 * as in the deleted kernel. Weights and products are float32, v_merged is rounded once. */
SGL_JIT_API sgl_jit_status sgl_jit_merge_state(const sgl_jit_tensor *v_a, const sgl_jit_tensor *s_a,
                                               const sgl_jit_tensor *v_b, const sgl_jit_tensor *s_b,
                                               const sgl_jit_tensor *v_merged, const sgl_jit_tensor *s_merged,
                                               void *stream, char *message, size_t message_size);

/* output[..., i] = scale * sum over j of H[i][j] * x[..., j], H the Hadamard matrix of Sylvester's order: H[i][j] is -1
 * to the number of ones in i & j.
 *
 *   x       [..., columns]  float32, bfloat16 or float16; each row in one piece, rows equally far apart
 *   output  as x, contiguous
 *
 * columns up to 32768; where it is no power of two, as if zeros came behind them up to the next one. Sums are float32,
 * in stages, the output is rounded once. More than 16384 columns need 147456 bytes of shared memory for a block:
 * SGL_JIT_ERROR_UNSUPPORTED on compute capabilities 8.6, 8.9 and 12.0. */
SGL_JIT_API sgl_jit_status sgl_jit_hadamard_transform(const sgl_jit_tensor *x, const sgl_jit_tensor *output,
                                                      double scale, void *stream, char *message, size_t message_size);

/* Bit i % 8 of y[output_indptr[s] + i / 8] = x[input_indptr[s] + i] != 0 for each i of segment s, which ends at
 * input_indptr[s + 1]; the bits behind its last one are 0.
 *
 *   x              bool or uint8, any sizes
 *   input_indptr   int32 [batch_size + 1] or longer, rising
 *   output_indptr  int32 [batch_size + 1] or longer
 *   y              uint8, any sizes
 *
 * On a device a segment that does not lie in x is left out, and what would lie behind y is not written. */
SGL_JIT_API sgl_jit_status sgl_jit_segment_packbits(const sgl_jit_tensor *x, const sgl_jit_tensor *input_indptr,
                                                    const sgl_jit_tensor *output_indptr, const sgl_jit_tensor *y,
                                                    int64_t batch_size, void *stream, char *message,
                                                    size_t message_size);

/* k_cache[loc[t]] = k[t] and v_cache[loc[t]] = v[t] for each token t, as bytes.
 *
 *   k_cache, v_cache  [slots, ...]   any of the dtypes above, all four of one; rows lie in one piece each, with any
 *                                    distance between them, the same in both
 *   loc               int32 or int64 [tokens], contiguous; two tokens of one slot leave either
 *   k, v              [tokens, ...]  likewise, with rows of as many elements; or contiguous tensors of as many elements
 *
 * Rows and their distances are multiples of 8 bytes, and so is where data starts (the deleted kernel asked for rows of
 * a multiple of 128 bytes). Overlaps are not looked for: both caches may be slices of one tensor. */
SGL_JIT_API sgl_jit_status sgl_jit_set_kv_buffer_kernel(const sgl_jit_tensor *k_cache, const sgl_jit_tensor *v_cache,
                                                        const sgl_jit_tensor *loc, const sgl_jit_tensor *k,
                                                        const sgl_jit_tensor *v, void *stream, char *message,
                                                        size_t message_size);

/* --- the other side of a comparison --- */

/* Copy a tensor's elements to host memory, or host memory into a tensor, in the order in which they lie in memory, and
 * wait until all work on `stream` is done. The elements have to lie in one piece (row-major, column-major, any order of
 * the dimensions); size is their number of bytes. On the CPU a plain copy. SGL_JIT_ERROR_CAPTURE, and the capture goes
 * on, when the stream is being captured. */
SGL_JIT_API sgl_jit_status sgl_jit_read(const sgl_jit_tensor *tensor, void *data, size_t size, void *stream,
                                        char *message, size_t message_size);
SGL_JIT_API sgl_jit_status sgl_jit_write(const sgl_jit_tensor *tensor, const void *data, size_t size, void *stream,
                                         char *message, size_t message_size);

/* The operators in plain C with double accumulation and one rounding, whatever the backend is: CPU tensors with the
 * shapes, dtypes and layouts of the operators above. Half a nanosecond to a nanosecond for each product of two numbers:
 * up to a quarter of a second for dsv3_fused_a_gemm, 7168 to 2112, with 16 tokens. */
SGL_JIT_API sgl_jit_status sgl_jit_reference_dsv3_router_gemm(const sgl_jit_tensor *output,
                                                              const sgl_jit_tensor *hidden_states,
                                                              const sgl_jit_tensor *router_weights, char *message,
                                                              size_t message_size);
SGL_JIT_API sgl_jit_status sgl_jit_reference_dsv3_fused_a_gemm(const sgl_jit_tensor *output,
                                                               const sgl_jit_tensor *mat_a, const sgl_jit_tensor *mat_b,
                                                               char *message, size_t message_size);
SGL_JIT_API sgl_jit_status sgl_jit_reference_bmm_fp8(const sgl_jit_tensor *output, const sgl_jit_tensor *A,
                                                     const sgl_jit_tensor *B, const sgl_jit_tensor *A_scale,
                                                     const sgl_jit_tensor *B_scale, char *message, size_t message_size);
SGL_JIT_API sgl_jit_status sgl_jit_reference_downcast_fp8(const sgl_jit_tensor *k, const sgl_jit_tensor *v,
                                                          const sgl_jit_tensor *k_out, const sgl_jit_tensor *v_out,
                                                          const sgl_jit_tensor *k_scale, const sgl_jit_tensor *v_scale,
                                                          const sgl_jit_tensor *loc, int64_t mult, int64_t offset,
                                                          char *message, size_t message_size);
SGL_JIT_API sgl_jit_status sgl_jit_reference_sgl_per_tensor_quant_fp8(const sgl_jit_tensor *input,
                                                                      const sgl_jit_tensor *output_q,
                                                                      const sgl_jit_tensor *output_s, int is_static,
                                                                      char *message, size_t message_size);

SGL_JIT_API sgl_jit_status sgl_jit_reference_merge_state(const sgl_jit_tensor *v_a, const sgl_jit_tensor *s_a,
                                                         const sgl_jit_tensor *v_b, const sgl_jit_tensor *s_b,
                                                         const sgl_jit_tensor *v_merged, const sgl_jit_tensor *s_merged,
                                                         char *message, size_t message_size);
SGL_JIT_API sgl_jit_status sgl_jit_reference_hadamard_transform(const sgl_jit_tensor *x, const sgl_jit_tensor *output,
                                                                double scale, char *message, size_t message_size);
SGL_JIT_API sgl_jit_status sgl_jit_reference_segment_packbits(const sgl_jit_tensor *x,
                                                              const sgl_jit_tensor *input_indptr,
                                                              const sgl_jit_tensor *output_indptr,
                                                              const sgl_jit_tensor *y, int64_t batch_size,
                                                              char *message, size_t message_size);
SGL_JIT_API sgl_jit_status sgl_jit_reference_set_kv_buffer_kernel(const sgl_jit_tensor *k_cache,
                                                                  const sgl_jit_tensor *v_cache,
                                                                  const sgl_jit_tensor *loc, const sgl_jit_tensor *k,
                                                                  const sgl_jit_tensor *v, char *message,
                                                                  size_t message_size);

/* --- kernels ahead of their first use --- */

/* Numbers are part of the ABI. */
typedef enum sgl_jit_op {
  SGL_JIT_OP_DSV3_ROUTER_GEMM = 0,
  SGL_JIT_OP_DSV3_FUSED_A_GEMM = 1,
  SGL_JIT_OP_DOWNCAST_FP8 = 2,
  SGL_JIT_OP_SGL_PER_TENSOR_QUANT_FP8 = 3,
  SGL_JIT_OP_MERGE_STATE = 4,
  SGL_JIT_OP_HADAMARD_TRANSFORM = 5,
  SGL_JIT_OP_SEGMENT_PACKBITS = 6,
  SGL_JIT_OP_SET_KV_BUFFER_KERNEL = 7
} sgl_jit_op;

/* One compiled kernel: it serves every number of tokens of its shape. Limits as in the operators above. Of an operator
 * with one kernel for every shape, n, k and output_dtype are 0. */
typedef struct sgl_jit_kernel_spec {
  sgl_jit_op op;
  int64_t n;                  /* num_experts, or hd_out */
  int64_t k;                  /* hidden_dim, or hd_in */
  sgl_jit_dtype output_dtype; /* of the router float32 or bfloat16; of the fused GEMM bfloat16 */
} sgl_jit_kernel_spec;

/* Gets the kernel ready on a device, as its first use would (from the cache, from the prebuilt folder, or compiled and
 * put into the cache), and launches nothing. Afterwards a call with this shape on this device only launches; where the
 * driver has no cuLibraryLoadData (before CUDA 12.0) that holds for the context that is current here, else the primary
 * one. Errors as of the operators. */
SGL_JIT_API sgl_jit_status sgl_jit_warm(const sgl_jit_kernel_spec *spec, int device_index, char *message,
                                        size_t message_size);

/* Compiles the kernel into the cache folder, with no device and no driver: for machines that build images. `target` is
 * what devices of a compute capability look for: "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a",
 * and others of the kind that NVRTC knows. Nothing is done when the cache folder has the entry; the prebuilt folder
 * does not count. SGL_JIT_ERROR_CACHE when the folder cannot be used or written; the message says which and why. */
SGL_JIT_API sgl_jit_status sgl_jit_compile(const sgl_jit_kernel_spec *spec, const char *target, char *message,
                                           size_t message_size);

/* --- the monitor of late compiles --- */

/* What happens when, after sgl_jit_warm_done, an operator needs a kernel that is in no folder. OFF: it is compiled.
 * WARN: it is compiled, and reported in one line. ERROR: it is not compiled, and the operator returns
 * SGL_JIT_ERROR_REFUSED with that line. sgl_jit_warm and sgl_jit_compile are asked for, so they may always compile. */
typedef enum sgl_jit_monitor {
  SGL_JIT_MONITOR_OFF = 0,
  SGL_JIT_MONITOR_WARN = 1,
  SGL_JIT_MONITOR_ERROR = 2
} sgl_jit_monitor;

/* The initial value comes from the environment variable SGL_KERNEL_JIT_MONITOR (off | warn | error, default warn), read
 * at the first compile after sgl_jit_warm_done; with another value that compile, and every later one, is an
 * INVALID_ARGUMENT error. */
SGL_JIT_API sgl_jit_status sgl_jit_set_monitor(sgl_jit_monitor monitor, char *message, size_t message_size);

/* From now on a compile in this process is late. */
SGL_JIT_API void sgl_jit_warm_done(void);

/* Valid during the hook's call only. */
typedef struct sgl_jit_late_compile {
  sgl_jit_kernel_spec spec;
  const char *target; /* "sm_90a" */
  int device_index;
  const char *text; /* all of it in one line, with the sgl-jit command that avoids it, as it would be printed */
} sgl_jit_late_compile;

/* Called instead of printing the line on stderr, before the compile and in the thread of the operator's call. It must
 * return normally (no C++ exception, no longjmp), and must not call the operators, sgl_jit_warm or sgl_jit_compile. */
typedef void (*sgl_jit_late_compile_hook)(const sgl_jit_late_compile *compile, void *user);

/* Set the hook of the process, or NULL to print on stderr. After it returns, another thread may still be inside the old
 * hook, so keep the old hook and its `user` valid. */
SGL_JIT_API void sgl_jit_set_late_compile_hook(sgl_jit_late_compile_hook hook, void *user);

/* --- counters --- */

/* Since the process began. A call that finds its kernel in memory is not counted: it would cost every call. Further
 * counters may be added at the end. */
typedef struct sgl_jit_counters {
  uint64_t cache_hits;    /* kernels read from the cache folder */
  uint64_t prebuilt_hits; /* kernels read from the prebuilt folder */
  uint64_t cache_misses;  /* kernels that neither had */
  uint64_t
      bad_entries;   /* entries that were there and were not used: damaged, not to be trusted, refused by the driver */
  uint64_t compiles; /* by this process, failed ones too */
  uint64_t compile_ns;    /* in them */
  uint64_t loads;         /* of code into the driver, failed ones too */
  uint64_t load_ns;       /* in them */
  uint64_t bytes_read;    /* of entries */
  uint64_t bytes_written; /* of entries */
  uint64_t waits;         /* for another process that had the lock of the same kernel */
  uint64_t wait_ns;       /* in them */
  uint64_t late_compiles; /* that the monitor reported */
  uint64_t refused;       /* compiles that the monitor refused */
} sgl_jit_counters;

/* Writes the first `size` bytes of the counters: pass sizeof(sgl_jit_counters); what this library does not know is set
 * to 0. Each value is exact, the values are not of one moment. */
SGL_JIT_API void sgl_jit_get_counters(sgl_jit_counters *counters, size_t size);

#ifdef __cplusplus
}
#endif

#endif
