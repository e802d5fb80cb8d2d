/* Torch's C functions (torch/csrc/inductor/aoti_torch/c/shim.h and torch/csrc/stable/c/shim.h), found at run time.
 *
 * The declarations are ours: torch's headers are C++ and are not needed. Each function returns 0 for success. A tensor
 * is a pointer to an at::Tensor object: the same pointer that a C++ reference is, so an at::Tensor& argument can be
 * passed as it is (borrowed). A tensor on a boxed kernel's stack is owned by the kernel, which deletes it. The
 * functions below may change errno, as torch's may: the library's own entry points restore it. */
#ifndef SGL_COMPAT_TORCH_ABI_H
#define SGL_COMPAT_TORCH_ABI_H

#include <stdbool.h>
#include <stdint.h>

/* A boxed kernel. `stack` has the arguments from left to right, a tensor as its pointer in 64 bits. */
typedef void torch_boxed(uint64_t *stack, uint64_t arguments_count, uint64_t results_count);

struct torch_abi {
  /* Metadata: in every torch that can be here (2.6 to 2.15 looked at). All are there, or the table is not. */
  int32_t (*get_data_ptr)(void *tensor, void **data); /* storage offset included */
  int32_t (*get_dim)(void *tensor, int64_t *count);
  int32_t (*get_sizes)(void *tensor, int64_t **sizes); /* borrowed from the tensor, as are the strides */
  int32_t (*get_strides)(void *tensor, int64_t **strides);
  int32_t (*get_dtype)(void *tensor, int32_t *dtype);
  int32_t (*get_device_type)(void *tensor, int32_t *type);
  int32_t (*get_device_index)(void *tensor, int32_t *index);
  int32_t (*delete_tensor_object)(void *tensor);
  void (*check)(bool condition, const char *function, const char *file, uint32_t line,
                const char *message); /* throws */
  int32_t dtype_bfloat16, dtype_float32, dtype_float16, dtype_float8_e4m3fn, dtype_float8_e5m2;
  int32_t dtype_int32, dtype_int64, dtype_uint8, dtype_bool;
  int32_t device_type_cpu, device_type_cuda;

  /* Registration: torch 2.7 and newer. All of them, or all NULL. Strings are kept by pointer. */
  int32_t (*library_init_fragment)(const char *space, const char *file, uint32_t line, void **library);
  int32_t (*library_init_impl)(const char *space, const char *key, const char *file, uint32_t line, void **library);
  int32_t (*library_def)(void *library, const char *schema); /* fails when the operator exists */
  int32_t (*library_impl)(void *library, const char *name, torch_boxed *kernel);
  int32_t (*delete_library_object)(void *library); /* takes back what the object registered */

  /* Each alone may be NULL. */
  int32_t (*library_impl_versioned)(void *library, const char *name, torch_boxed *kernel,
                                    uint64_t abi_version); /* 2.10 */
  const char *(*exception_what)(void);                     /* 2.13: the thread's last failure, without a backtrace */

  /* To call another library's operator: all three, or all NULL. Handles on the stack are given away. (2.9) */
  int32_t (*call_dispatcher)(const char *operator_name, const char *overload, uint64_t *stack);
  int32_t (*new_tensor_handle)(void *tensor, void **handle);
  int32_t (*empty_strided)(int64_t dim, const int64_t *sizes, const int64_t *strides, int32_t dtype,
                           int32_t device_type, int32_t device_index, void **tensor);
};

/* The functions of the torch in this process; NULL when there is none yet. Found once and then kept; before that every
 * call looks again. Thread-safe, and without a lock. */
const struct torch_abi *torch_abi_get(void);

/* Why torch_abi_get gives NULL. TORCH_OLD: there is a torch, of a release before 2.6. */
enum torch_absence { TORCH_NONE, TORCH_OLD };
struct torch_abi_why {
  enum torch_absence absence;
  char text[512];
};
struct torch_abi_why torch_abi_why(void);

/* Torch's words for the thread's last failure, to be put behind a message: ": the words" in one line, cut where they
 * are long, or "" where torch keeps none. */
struct torch_abi_what {
  char text[512];
};
struct torch_abi_what torch_abi_what(const struct torch_abi *torch);

/* torch's current stream of a CUDA device (a CUstream; NULL is the default stream). False when this process's torch has
 * no CUDA part or it fails. */
bool torch_abi_cuda_stream(int32_t device_index, void **stream);

/* Why it was false: ": this process has no libtorch_cuda.so", or torch's own words. */
struct torch_abi_what torch_abi_no_stream(const struct torch_abi *torch);

#endif
