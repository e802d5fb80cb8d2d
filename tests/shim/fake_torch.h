/* The stand-in for torch that the unit tests load: fake_torch.cc, built four times as the torch of different years. */
#ifndef SGL_TESTS_FAKE_TORCH_H
#define SGL_TESTS_FAKE_TORCH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  FAKE_BYTE = 0,
  FAKE_INT32 = 3,
  FAKE_INT64 = 4,
  FAKE_FLOAT16 = 5,
  FAKE_FLOAT32 = 6,
  FAKE_BOOL = 11,
  FAKE_BFLOAT16 = 15,
  FAKE_E5M2 = 23,
  FAKE_E4M3 = 24
};
enum { FAKE_CPU = 0, FAKE_CUDA = 1, FAKE_META = 9 };

/* What a handle points to. The shim sees an opaque pointer. */
struct fake_tensor {
  void *data;
  int64_t dim, sizes[4], strides[4];
  int32_t dtype, device_type, device_index;
  int32_t broken;  /* every question about the tensor fails, as for an undefined at::Tensor */
  int32_t deleted; /* how often delete_tensor_object was called with it */
};

typedef void fake_boxed(uint64_t *stack, uint64_t arguments, uint64_t results);

struct fake_library {
  char kind[12]; /* "fragment" or "impl" */
  char space[32], key[16];
  char schema[256]; /* of the def */
  char name[64];    /* of the impl */
  fake_boxed *kernel;
  uint64_t abi_version; /* 0: registered through the function without version */
  int deleted;
};

/* All that happened, and what shall happen. */
struct fake_state {
  struct fake_library libraries[128];
  int libraries_count;
  int defined_before;    /* library_def fails: an old wheel has the operator */
  int fail_fragment;     /* library_init_fragment fails */
  int fail_impl_after;   /* when > 0: the n-th library_impl from now fails */
  int streams_asked;     /* calls of get_current_cuda_stream */
  int32_t stream_device; /* the last device asked for */
  int stream_fails;
  char dispatched[96]; /* the operator that call_dispatcher was last asked for ... */
  int old_byte;        /* ... which fills its output with this byte */
  int old_fails;       /* ... or fails */
  int handles;         /* made by new_tensor_handle and empty_strided */
  int deleted;         /* calls of delete_tensor_object */
};

typedef struct fake_state *fake_state_function(void);

#ifdef __cplusplus
}
#endif

#endif
