/* The controls of the fake driver (fake_cuda.c), the fake compiler (fake_nvrtc.c) and the fake cuBLASLt
 * (fake_cublaslt.c). They are shared libraries; a test opens them and finds `fake_cuda`, `fake_nvrtc` and
 * `fake_cublaslt` by name. Set the fields before the first call that they concern. */
#ifndef SGL_TESTS_FAKES_H
#define SGL_TESTS_FAKES_H

#include <stdatomic.h>
#include <stddef.h>

enum { FAKE_DEVICES = 20 };

struct fake_cuda {
  int version;      /* 13000 */
  int device_count; /* 2 */
  int major, minor; /* 9.0 */
  int shared_optin; /* 232448 */
  int window_bytes; /* 134217728: what a launch can tell the cache about; 0: nothing */
  int refuse_load;  /* loading code fails with error 900: 1 unless this thread's capture mode is relaxed, 2 always */
  _Atomic int init_error; /* what these calls return; 0: they work */
  _Atomic int retain_error, load_error, function_error, attribute_error, launch_error, copy_error;
  int hide_error_names; /* cuGetErrorName knows nothing */
  int capturing;        /* what cuStreamIsCapturing says of every stream */
  int idle;             /* for measurements: nothing is recorded and nothing run, and anything can be loaded as code */
  /* What the last launch asked for. */
  unsigned grid[3], block[3], shared_bytes;
  void *stream;
  char entry[64];
  int overlap;           /* it may start before the kernel before it ends */
  const void *streamed;  /* what leaves the cache first: from here on ... */
  size_t streamed_bytes; /* ... so many bytes; 0: nothing */
};

struct fake_nvrtc {
  int major, minor;       /* 13.0 */
  int archs[16], archs_n; /* 80 86 89 90 100 103 120 */
  int compile_error;      /* nvrtcResult of nvrtcCompileProgram; 0: it works */
  const char *log;        /* what it says then */
  int idle;               /* for measurements: compiles to something that only an idle driver takes for code */
  _Atomic int asked;      /* calls of nvrtcVersion: how often it was opened */
  _Atomic int compiled;   /* calls of nvrtcCompileProgram */
  /* Descriptors, or 0. A compile writes a byte to the first when it begins, and then waits for one from the second. */
  int told, held;
  char options[768]; /* of the last one, with blanks between */
};

struct fake_cublaslt {
  int version;          /* 130100 is 13.1.0 */
  int needs_workspace;  /* bytes that its only algorithm needs, 0 */
  int needs_alignment;  /* and of its matrices, 16 */
  int takes_odd_scales; /* scales may start anywhere, as up to 12.8 */
  int needs_relaxed;    /* creating a handle and the first product of a kind fail with error 14 unless this thread's
                           capture mode is relaxed; 2: they fail always */
  _Atomic int create_error, heuristic_error, state, matmul_error; /* cublasStatus_t of these; 0: they work */
  int idle;                                /* for measurements: products are checked and not computed */
  _Atomic int created, chosen, multiplied; /* calls that worked */
  /* Of the last product. */
  void *stream;
  int device, alignment;
  unsigned long long workspace_size;
  char fault[160]; /* why the last call was refused, "" if none was */
};

/* The fake driver's constructor, where the environment variable SGL_TEST_HOLD_LOAD names two descriptors ("5 8"):
 * writes a byte to the second one and waits for one from the first one, so that a test can act while the driver is
 * loaded. */

/* How often a driver function was called; "" counts them all. */
typedef int fake_cuda_count_function(const char *name);
/* A new context of a device (an ordinal; not its primary context), pushed on the thread's stack if asked. */
typedef void *fake_cuda_context_function(int ordinal, int push);

#endif
