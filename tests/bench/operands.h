/* Calls of the two operators on the fake driver, which computes nothing: shapes, strides and addresses. */
#ifndef SGL_TESTS_BENCH_OPERANDS_H
#define SGL_TESTS_BENCH_OPERANDS_H

#include "sgl_kernel_jit/sgl_kernel_jit.h"
#include "tests/bench/bench.h"
#include "tests/jit/fakes.h"

enum { OPERANDS_TOKENS = 4, OPERANDS_K = 256 };

struct operands {
  int64_t sizes[3][2], strides[3][2];
  sgl_jit_tensor tensor[3]; /* output, a, w */
};

/* The i-th shape of an operator, i from 0; up to 100 of the router fit its limit of 1024 experts. */
HELPER void operands_make(struct operands *o, int fused, int i) {
  static _Alignas(16) char output[1 << 16], a[1 << 16], w[1 << 21];
  int64_t n = (fused ? 16 : 8) * (i + 1), k = OPERANDS_K, m = OPERANDS_TOKENS;
  *o = (struct operands){.sizes = {{m, n}, {m, k}, {fused ? k : n, fused ? n : k}},
                         .strides = {{n, 1}, {k, 1}, {fused ? 1 : k, fused ? k : 1}}};
  char *data[3] = {output, a, w};
  for (int t = 0; t < 3; t++)
    o->tensor[t] = (sgl_jit_tensor){.data = data[t],
                                    .dtype = t == 0 && !fused ? SGL_JIT_DTYPE_FLOAT32 : SGL_JIT_DTYPE_BFLOAT16,
                                    .device_type = SGL_JIT_DEVICE_CUDA,
                                    .ndim = 2,
                                    .sizes = o->sizes[t],
                                    .strides = o->strides[t]};
}

typedef int operands_get_device(int *device);
typedef int operands_launch(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                            unsigned shared, void *stream, void **arguments, void **extra);

/* The fake driver and compiler, idle: what is left of a call is the library's own. */
struct operands_driver {
  fake_cuda_context_function *context;
  operands_get_device *get_device;
  operands_launch *launch;
  void *function; /* a loaded one */
};

HELPER struct operands_driver operands_driver(void) {
  void *cuda = bench_open("jit/fake_cuda.so", RTLD_LOCAL), *nvrtc = bench_open("jit/fake_nvrtc.so", RTLD_LOCAL);
  struct operands_driver d;
  *(void **)&d.context = bench_symbol(cuda, "fake_cuda_context");
  *(void **)&d.get_device = bench_symbol(cuda, "cuCtxGetDevice");
  *(void **)&d.launch = bench_symbol(cuda, "cuLaunchKernel");
  ((struct fake_cuda *)bench_symbol(cuda, "fake_cuda"))->idle = 1;
  ((struct fake_nvrtc *)bench_symbol(nvrtc, "fake_nvrtc"))->idle = 1;
  setenv("SGL_KERNEL_JIT_NVRTC", "libnvrtc.so.13", 1); /* its name, loaded */
  setenv("SGL_KERNEL_JIT_CACHE_DIR", "/dev/null", 1);  /* no cache: what the fakes compile must not be kept */
  unsetenv("SGL_KERNEL_JIT_BACKEND");
  d.context(0, 1);
  int (*load)(void **, const void *, int *, void **, unsigned, int *, void **, unsigned);
  int (*get)(void **, void *, const char *);
  void *library;
  *(void **)&load = bench_symbol(cuda, "cuLibraryLoadData");
  *(void **)&get = bench_symbol(cuda, "cuLibraryGetKernel");
  if (load(&library, "", NULL, NULL, 0, NULL, NULL, 0) != 0 || get(&d.function, library, "bench") != 0)
    exit(2);
  return d;
}

/* What a call asks of the driver, and nothing else. */
HELPER void operands_driver_alone(void *user, int thread, int calls) {
  struct operands_driver *d = user;
  if (thread)
    d->context(0, 1);
  for (int i = 0; i < calls; i++) {
    int device;
    void *arguments[1] = {&device};
    if (d->get_device(&device) != 0 || d->launch(d->function, 1, 1, 1, 32, 1, 1, 0, d, arguments, NULL) != 0)
      exit(2);
  }
}

#endif
