/* Private interface of the operators whose one kernel serves every shape: each in a file of its own, and what they
 * share.
 *
 *   public function -> native.c -> the operator's check -> arguments.c
 *                               -> the operator's reference -> numbers.c   (CPU)
 *                               -> the operator's steps, launch.c          (CUDA)
 */
#ifndef SGL_JIT_NATIVE_H
#define SGL_JIT_NATIVE_H

#include "internal.h"
#include "kernels/arguments.h"

/* --- arguments.c --- */

struct jit_argument {
  const char *name;
  const sgl_jit_tensor *t;
};

/* All of these write what was expected and what came. */

/* There, with sizes and strides, and no larger than memory. To be asked first. */
sgl_jit_status jit_check_tensors(const struct jit_argument all[], int count, struct jit_message m);
sgl_jit_status jit_check_rank(const struct jit_argument *a, int ndim, struct jit_message m);
/* One of the dtypes of a list that ends with SGL_JIT_DTYPE_OTHER. */
sgl_jit_status jit_check_dtype(const struct jit_argument *a, const sgl_jit_dtype list[], struct jit_message m);
sgl_jit_status jit_check_same_dtype(const struct jit_argument *a, const struct jit_argument *like,
                                    struct jit_message m);
sgl_jit_status jit_check_same_sizes(const struct jit_argument *a, const struct jit_argument *like,
                                    struct jit_message m);
sgl_jit_status jit_check_same_count(const struct jit_argument *a, const struct jit_argument *like,
                                    struct jit_message m);
/* One element, whatever the number of dimensions. */
sgl_jit_status jit_check_one(const struct jit_argument *a, struct jit_message m);
/* Contiguous, as torch says it: the strides of dimensions of size 1, and of an empty tensor, are free. */
sgl_jit_status jit_check_contiguous(const struct jit_argument *a, struct jit_message m);
/* All on the CPU, or on one CUDA device; with data where they have elements, aligned to their elements. */
sgl_jit_status jit_check_places(const struct jit_argument all[], int count, struct jit_message m);
/* No byte in common. Of contiguous tensors. */
sgl_jit_status jit_check_apart(const struct jit_argument *output, const struct jit_argument *input,
                               struct jit_message m);

int64_t jit_elements(const sgl_jit_tensor *t);

/* --- numbers.c --- */

/* Element i of an array of float32, bfloat16 or float16, and the reverse: to nearest, ties to even, in one step. */
double jit_number(sgl_jit_dtype dtype, const void *array, int64_t i);
void jit_put_number(sgl_jit_dtype dtype, void *array, int64_t i, double value);
/* As the array would keep it. */
double jit_rounded(sgl_jit_dtype dtype, double value);
/* What is beyond 448 becomes 448, a NaN 0x7f. */
uint8_t jit_to_e4m3(double value);

/* --- native.c --- */

/* What a kernel gets, and the reference too. */
union jit_kernel_argument {
  struct downcast_fp8 downcast;
  struct per_tensor_quant quant;
  struct merge_state merge;
  struct hadamard hadamard;
  struct packbits packbits;
  struct store_kv store;
};

/* A checked call. */
struct jit_call {
  bool cuda; /* else CPU */
  int device;
  bool empty;          /* nothing to do */
  sgl_jit_dtype dtype; /* of the numbers that are read */
  union jit_kernel_argument a;
  bool whole;     /* pieces of 16 bytes or more, else single elements */
  bool is_static; /* sgl_per_tensor_quant_fp8 */
};

/* One launch: which entry point, of those in paths.c, and how many blocks. Threads and bytes of shared memory are those
 * of paths.c where they are 0 here; they must not be more. */
struct jit_step {
  int entry;
  int64_t blocks;
  int threads, shared;
};
enum { JIT_MOST_STEPS = 2 };

struct jit_native {
  enum jit_op op;
  sgl_jit_status (*check)(const sgl_jit_tensor *const t[], const int64_t numbers[], struct jit_call *call,
                          struct jit_message m);
  sgl_jit_status (*reference)(const struct jit_call *call, struct jit_message m);
  int (*steps)(const struct jit_call *call, struct jit_step steps[JIT_MOST_STEPS]);
};

/* The whole call; `reference`: in plain C, whatever the backend is. */
sgl_jit_status jit_native_run(const struct jit_native *native, bool reference, const sgl_jit_tensor *const t[],
                              const int64_t numbers[], void *stream, char *message, size_t message_size);

/* --- launch.c --- */

sgl_jit_status jit_launch_native(const struct jit_native *native, const struct jit_call *call, void *stream,
                                 struct jit_message m);

#endif
