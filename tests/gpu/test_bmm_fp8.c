/* bmm_fp8 on a real GPU, through the real cuBLASLt, against double sums on the CPU. Needs the CUDA driver and cuBLASLt;
 * neither nvcc nor torch. */
#include "sgl_kernel_jit/sgl_kernel_jit.h"
#include "tests/small_floats.h"
#include "tests/unit.h"
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define E4M3 SGL_JIT_DTYPE_FLOAT8_E4M3FN
#define E5M2 SGL_JIT_DTYPE_FLOAT8_E5M2
#define BF16 SGL_JIT_DTYPE_BFLOAT16
#define FP16 SGL_JIT_DTYPE_FLOAT16

/* --- the driver --- */

typedef int CUresult;
typedef void *CUhandle;
typedef unsigned long long CUdeviceptr;

#define DRIVER_FUNCTIONS(X)                                                                                            \
  X(cuInit, (unsigned))                                                                                                \
  X(cuDeviceGetCount, (int *))                                                                                         \
  X(cuDeviceGet, (int *, int))                                                                                         \
  X(cuDeviceGetAttribute, (int *, int, int))                                                                           \
  X(cuDevicePrimaryCtxRetain, (CUhandle *, int))                                                                       \
  X(cuCtxSetCurrent, (CUhandle))                                                                                       \
  X(cuCtxGetCurrent, (CUhandle *))                                                                                     \
  X(cuCtxSynchronize, (void))                                                                                          \
  X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                                            \
  X(cuMemFree_v2, (CUdeviceptr))                                                                                       \
  X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                                              \
  X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                                                    \
  X(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t))                                                               \
  X(cuStreamCreate, (CUhandle *, unsigned))                                                                            \
  X(cuStreamDestroy_v2, (CUhandle))                                                                                    \
  X(cuStreamSynchronize, (CUhandle))                                                                                   \
  X(cuStreamBeginCapture_v2, (CUhandle, int))                                                                          \
  X(cuStreamEndCapture, (CUhandle, CUhandle *))                                                                        \
  X(cuGraphInstantiateWithFlags, (CUhandle *, CUhandle, unsigned long long))                                           \
  X(cuGraphLaunch, (CUhandle, CUhandle))                                                                               \
  X(cuGraphExecDestroy, (CUhandle))                                                                                    \
  X(cuGraphDestroy, (CUhandle))

static struct {
#define POINTER(name, parameters) CUresult(*name) parameters;
  DRIVER_FUNCTIONS(POINTER)
#undef POINTER
} cu;

static CUhandle primary;
static char unavailable[600];

static void open_driver(void) {
  int device, major, minor;
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    snprintf(unavailable, sizeof unavailable, "no CUDA driver on this machine");
    return;
  }
#define FIND(name, parameters)                                                                                         \
  *(void **)&cu.name = dlsym(library, #name);                                                                          \
  if (!cu.name) {                                                                                                      \
    snprintf(unavailable, sizeof unavailable, "the CUDA driver has no " #name);                                        \
    return;                                                                                                            \
  }
  DRIVER_FUNCTIONS(FIND)
#undef FIND
  if (cu.cuInit(0) || cu.cuDeviceGet(&device, 0) || cu.cuDeviceGetAttribute(&major, 75, device) ||
      cu.cuDeviceGetAttribute(&minor, 76, device) || cu.cuDevicePrimaryCtxRetain(&primary, device) ||
      cu.cuCtxSetCurrent(primary))
    snprintf(unavailable, sizeof unavailable, "no usable CUDA device");
  else if (major * 10 + minor < 89)
    snprintf(unavailable, sizeof unavailable, "compute capability %d.%d has no FP8", major, minor);
}

/* --- a call --- */

enum { GUARD = 512, WORKSPACE = 32 << 20 };

struct shape {
  int batch, m, n, k;
};

struct call {
  struct shape s;
  sgl_jit_dtype a_type, b_type, output_type;
  int device, past; /* bytes that A, B and output start past a multiple of 256 */
  int scales_past;  /* and A_scale past one of 16 */
  uint8_t *a, *b;
  float scales[2];       /* they lie 16 bytes apart */
  unsigned char *output; /* with a guard before and after it */
  CUdeviceptr a_device, b_device, scales_device, output_device, workspace;
  size_t workspace_size;
  CUhandle stream;
};

static char message[1024];

static struct small_float format_of(sgl_jit_dtype type) {
  return type == E4M3 ? small_e4m3 : type == E5M2 ? small_e5m2 : type == FP16 ? small_fp16 : small_bf16;
}

static size_t count_of(int a, int b, int c) {
  return (size_t)a * (size_t)b * (size_t)c;
}

static size_t output_bytes(const struct call *c) {
  return count_of(c->s.batch, c->s.m, c->s.n) * 2;
}

/* Any mantissa, and one of four exponents around that of 1: sums of many such terms need what an accumulator has. */
static void fill(uint8_t *p, size_t count, sgl_jit_dtype type, uint64_t seed) {
  struct small_float f = format_of(type);
  for (size_t i = 0; i < count; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    unsigned r = (unsigned)(seed >> 40), bias = (1u << f.exponent_bits) / 2 - 1;
    unsigned mantissa = r & ((1u << f.mantissa_bits) - 1), exponent = bias - 2 + (r >> 8 & 3);
    p[i] = (uint8_t)((r >> 16 & 1) << 7 | exponent << f.mantissa_bits | mantissa);
  }
}

static bool upload(struct call *c) {
  return cu.cuMemcpyHtoD_v2(c->a_device + (unsigned)c->past, c->a, count_of(c->s.batch, c->s.m, c->s.k)) == 0 &&
         cu.cuMemcpyHtoD_v2(c->b_device + (unsigned)c->past, c->b, count_of(c->s.batch, c->s.n, c->s.k)) == 0 &&
         cu.cuMemcpyHtoD_v2(c->scales_device + (unsigned)c->scales_past, &c->scales[0], sizeof(float)) == 0 &&
         cu.cuMemcpyHtoD_v2(c->scales_device + (unsigned)c->scales_past + 16, &c->scales[1], sizeof(float)) == 0 &&
         cu.cuMemsetD8_v2(c->output_device, 0xff, output_bytes(c) + 2 * GUARD + 256) == 0 && cu.cuCtxSynchronize() == 0;
}

/* In the current context, which is of c->device. */
static bool make(struct call *c, uint64_t seed) {
  size_t a = count_of(c->s.batch, c->s.m, c->s.k), b = count_of(c->s.batch, c->s.n, c->s.k);
  c->a = malloc(a);
  c->b = malloc(b);
  c->output = malloc(output_bytes(c) + 2 * GUARD);
  c->scales[0] = 0.0123f;
  c->scales[1] = 0.37f;
  if (!c->a || !c->b || !c->output || cu.cuMemAlloc_v2(&c->a_device, a + 256) ||
      cu.cuMemAlloc_v2(&c->b_device, b + 256) || cu.cuMemAlloc_v2(&c->scales_device, 64) ||
      cu.cuMemAlloc_v2(&c->output_device, output_bytes(c) + 2 * GUARD + 256) ||
      (c->workspace_size && cu.cuMemAlloc_v2(&c->workspace, c->workspace_size)))
    return false;
  fill(c->a, a, c->a_type, seed);
  fill(c->b, b, c->b_type, seed + 1);
  return upload(c);
}

static void drop(struct call *c) {
  const CUdeviceptr all[] = {c->a_device, c->b_device, c->scales_device, c->output_device, c->workspace};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (all[i])
      cu.cuMemFree_v2(all[i]);
  free(c->a);
  free(c->b);
  free(c->output);
}

static sgl_jit_status run_into(const struct call *c, char *text, size_t text_size) {
  const int64_t batch = c->s.batch, m = c->s.m, n = c->s.n, k = c->s.k, one = 1;
  const int64_t sizes[3][3] = {{batch, m, n}, {batch, m, k}, {batch, k, n}};
  const int64_t strides[3][3] = {{m * n, n, 1}, {m * k, k, 1}, {k * n, 1, k}};
#define AT(pointer) ((void *)(uintptr_t)(pointer))
  const sgl_jit_tensor t[5] = {
      {AT(c->output_device + GUARD + (unsigned)c->past), c->output_type, SGL_JIT_DEVICE_CUDA, c->device, 3, sizes[0],
       strides[0]},
      {AT(c->a_device + (unsigned)c->past), c->a_type, SGL_JIT_DEVICE_CUDA, c->device, 3, sizes[1], strides[1]},
      {AT(c->b_device + (unsigned)c->past), c->b_type, SGL_JIT_DEVICE_CUDA, c->device, 3, sizes[2], strides[2]},
      {AT(c->scales_device + (unsigned)c->scales_past), SGL_JIT_DTYPE_FLOAT32, SGL_JIT_DEVICE_CUDA, c->device, 1, &one,
       &one},
      {AT(c->scales_device + (unsigned)c->scales_past + 16), SGL_JIT_DTYPE_FLOAT32, SGL_JIT_DEVICE_CUDA, c->device, 0,
       NULL, NULL},
  };
  text[0] = '\0';
  return sgl_jit_bmm_fp8(&t[0], &t[1], &t[2], &t[3], &t[4], AT(c->workspace), c->workspace_size, c->stream, text,
                         text_size);
}

static sgl_jit_status run(const struct call *c) {
  sgl_jit_status status = run_into(c, message, sizeof message);
  if (status != SGL_JIT_OK)
    printf("  %s\n", message);
  return status;
}

/* Once, before the first case: is there a cuBLASLt, and can it start here? */
static bool ready(void) {
  static bool looked;
  if (!unavailable[0] && !looked) {
    struct call c = {.s = {1, 16, 16, 16}, .a_type = E4M3, .b_type = E4M3, .output_type = BF16};
    if (make(&c, 1) && run(&c) == SGL_JIT_ERROR_NO_CUBLASLT)
      snprintf(unavailable, sizeof unavailable, "%.500s", message);
    drop(&c);
  }
  looked = true;
  if (unavailable[0])
    UNIT_SKIP("%.200s", unavailable);
  else
    cu.cuCtxSetCurrent(primary);
  return !unavailable[0];
}

/* --- against the CPU --- */

/* How far an output may be off: a last place of the output, and for the accumulator 2^-11 of the sum of the terms'
 * magnitudes. On compute capability 9.0 the fast accumulation drops what is 2^-13 below the largest of the numbers that
 * an instruction adds, once for each 32 of k; a wrong term would be far outside at the k used here. */
static bool correct(struct call *c, bool print) {
  double square = 0, want_square = 0, largest = 0, scale = (double)c->scales[0] * (double)c->scales[1];
  struct small_float a_format = format_of(c->a_type), b_format = format_of(c->b_type), f = format_of(c->output_type);
  double a_values[256], b_values[256];
  size_t bytes = output_bytes(c), k_count = (size_t)c->s.k;
  if (cu.cuCtxSynchronize() ||
      cu.cuMemcpyDtoH_v2(c->output, c->output_device + (unsigned)c->past, bytes + 2 * GUARD) != 0)
    return false;
  for (size_t i = 0; i < GUARD; i++)
    if (c->output[i] != 0xff || c->output[GUARD + bytes + i] != 0xff) {
      printf("  written outside of the output\n");
      return false;
    }
  for (unsigned i = 0; i < 256; i++) {
    a_values[i] = small_value(a_format, i);
    b_values[i] = small_value(b_format, i);
  }
  const uint16_t *output = (const uint16_t *)(const void *)(c->output + GUARD);
  for (int batch = 0; batch < c->s.batch; batch++)
    for (int m = 0; m < c->s.m; m++)
      for (int n = 0; n < c->s.n; n++) {
        const uint8_t *a = c->a + ((size_t)batch * (size_t)c->s.m + (size_t)m) * k_count;
        const uint8_t *b = c->b + ((size_t)batch * (size_t)c->s.n + (size_t)n) * k_count;
        double want = 0, terms = 0, have = small_value(f, *output++);
        for (size_t k = 0; k < k_count; k++) {
          want += a_values[a[k]] * b_values[b[k]];
          terms += fabs(a_values[a[k]] * b_values[b[k]]);
        }
        want *= scale;
        double place = ldexp(fabs(want), -f.mantissa_bits) + (c->output_type == FP16 ? 0x1p-24 : 0);
        double error = fabs(have - want), allowed = place + 0x1p-11 * terms * fabs(scale);
        if (!(error / allowed <= largest)) /* a NaN is the largest */
          largest = error / allowed;
        square += error * error;
        want_square += want * want;
      }
  double norm = sqrt(square / want_square);
  bool ok = largest <= 1 && norm <= 0.01;
  if (print || !ok)
    printf("  %3d x %4d x %4d x %4d, %s x %s to %s: norm error %.2e, largest %.2f of what is allowed\n", c->s.batch,
           c->s.m, c->s.n, c->s.k, c->a_type == E4M3 ? "e4m3" : "e5m2", c->b_type == E4M3 ? "e4m3" : "e5m2",
           c->output_type == BF16 ? "bf16" : "fp16", norm, largest);
  return ok;
}

static void computes(struct shape s, const sgl_jit_dtype types[3], size_t workspace_size, int past, bool print) {
  struct call c = {.s = s,
                   .a_type = types[0],
                   .b_type = types[1],
                   .output_type = types[2],
                   .workspace_size = workspace_size,
                   .past = past};
  CU_ASSERT(make(&c, 11));
  for (int i = 0; i < 2; i++) { /* the first use of the shape, and a later one */
    CU_ASSERT(upload(&c));
    CU_ASSERT_EQUAL(run(&c), SGL_JIT_OK);
    CU_ASSERT(correct(&c, print && i));
  }
  drop(&c);
}

static const sgl_jit_dtype types[][3] = {{E4M3, E4M3, BF16}, {E4M3, E4M3, FP16}, {E4M3, E5M2, BF16},
                                         {E4M3, E5M2, FP16}, {E5M2, E4M3, BF16}, {E5M2, E4M3, FP16}};
enum { TYPES = sizeof types / sizeof types[0] };

/* --- the cases --- */

/* Allowed is success, and the clear refusal. */
static void first_in_capture(struct shape s, int scales_past) {
  if (unavailable[0]) {
    UNIT_SKIP("%.200s", unavailable);
    return;
  }
  struct call c = {.s = s,
                   .a_type = E4M3,
                   .b_type = E4M3,
                   .output_type = BF16,
                   .workspace_size = WORKSPACE,
                   .scales_past = scales_past};
  CUhandle graph = NULL, executable = NULL;
  CU_ASSERT(make(&c, 3));
  CU_ASSERT_EQUAL(cu.cuStreamCreate(&c.stream, 1), 0);
  CU_ASSERT_EQUAL(cu.cuStreamBeginCapture_v2(c.stream, 0), 0); /* the global mode, the strictest */
  sgl_jit_status status = run(&c);
  CUresult ended = cu.cuStreamEndCapture(c.stream, &graph);
  printf("  %s, the capture ended with %d\n", sgl_jit_status_name(status), ended);
  if (status == SGL_JIT_ERROR_NO_CUBLASLT) {
    snprintf(unavailable, sizeof unavailable, "%.500s", message);
    UNIT_SKIP("%.200s", unavailable);
  } else if (status == SGL_JIT_OK) {
    CU_ASSERT_EQUAL(ended, 0);
    CU_ASSERT_EQUAL(cu.cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
    CU_ASSERT_EQUAL(cu.cuGraphLaunch(executable, c.stream), 0);
    CU_ASSERT(correct(&c, true));
  } else {
    CU_ASSERT_EQUAL(status, SGL_JIT_ERROR_CAPTURE);
  }
  if (!unavailable[0]) { /* nothing is left behind */
    CU_ASSERT(upload(&c));
    CU_ASSERT_EQUAL(run(&c), SGL_JIT_OK);
    CU_ASSERT(correct(&c, false));
  }
  if (executable)
    cu.cuGraphExecDestroy(executable);
  if (graph)
    cu.cuGraphDestroy(graph);
  cu.cuStreamDestroy_v2(c.stream);
  drop(&c);
}

/* The first case of all, so that the handle is created in the capture too. */
static void first_use_in_capture(void) {
  first_in_capture((struct shape){4, 7, 64, 96}, 0);
}

/* Where cuBLASLt refuses the scales, it does so in the capture. */
static void copied_scales_in_capture(void) {
  first_in_capture((struct shape){4, 6, 64, 96}, 4);
}

/* The absorbed products of DeepSeek's attention (128 and 512 wide, a matrix for each head), and the edges. */
static void shapes(void) {
  static const struct shape all[] = {{16, 1, 512, 128},  {16, 1, 128, 512}, {16, 33, 512, 128}, {128, 4, 128, 512},
                                     {16, 48, 80, 64},   {1, 1, 16, 16},    {3, 17, 32, 48},    {2, 128, 256, 1024},
                                     {1, 257, 128, 144}, {1, 64, 64, 32}};
  if (!ready())
    return;
  for (size_t s = 0; s < sizeof all / sizeof all[0]; s++)
    for (int t = 0; t < TYPES; t++)
      computes(all[s], types[t], WORKSPACE, 0, t == 0 || s == 0);
}

/* Rows of the output of 16 bytes, but not of 16 elements. */
static void n_of_8(void) {
  static const struct shape all[] = {{1, 1, 8, 16}, {2, 5, 24, 64}, {16, 16, 136, 128}};
  if (!ready())
    return;
  for (size_t s = 0; s < sizeof all / sizeof all[0]; s++)
    for (int t = 0; t < 2; t++)
      computes(all[s], types[t], WORKSPACE, 0, t == 0);
}

static void alignment_and_workspace(void) {
  if (!ready())
    return;
  for (int past = 16; past <= 128; past *= 2)
    computes((struct shape){4, 20, 64, 128}, types[0], WORKSPACE, past, false);
  computes((struct shape){4, 20, 64, 128}, types[0], 0, 0, false);
  computes((struct shape){4, 20, 64, 128}, types[0], 4096, 16, false);
  computes((struct shape){1, 1, 64, 1024}, types[0], 0, 16, false);
}

/* cuBLASLt 13.1 takes no such scales here: they are copied. */
static void scales_anywhere(void) {
  if (!ready())
    return;
  for (int past = 0; past < 16; past += 4) {
    struct call c = {.s = {3, 5, 48, 64},
                     .a_type = E4M3,
                     .b_type = E4M3,
                     .output_type = BF16,
                     .workspace_size = past == 8 ? 256 : WORKSPACE,
                     .scales_past = past};
    CU_ASSERT(make(&c, 33));
    for (int i = 0; i < 2; i++) {
      CU_ASSERT(upload(&c));
      CU_ASSERT_EQUAL(run(&c), SGL_JIT_OK);
      CU_ASSERT(correct(&c, false));
    }
    c.workspace_size = 0;
    CU_ASSERT_EQUAL(run_into(&c, message, sizeof message), past ? SGL_JIT_ERROR_UNSUPPORTED : SGL_JIT_OK);
    drop(&c);
  }
}

/* Scales are read on the device when the work runs: also in a graph, which gets other numbers later, and also where
 * they are copied. */
static void graph_of(int scales_past) {
  struct call c = {.s = {8, 9, 128, 128},
                   .a_type = E4M3,
                   .b_type = E4M3,
                   .output_type = BF16,
                   .workspace_size = WORKSPACE,
                   .scales_past = scales_past};
  CUhandle graph = NULL, executable = NULL;
  CU_ASSERT(make(&c, 5));
  CU_ASSERT_EQUAL(cu.cuStreamCreate(&c.stream, 1), 0);
  CU_ASSERT_EQUAL(run(&c), SGL_JIT_OK);
  CU_ASSERT(correct(&c, false));
  CU_ASSERT_EQUAL(cu.cuStreamBeginCapture_v2(c.stream, 0), 0);
  CU_ASSERT_EQUAL(run(&c), SGL_JIT_OK);
  CU_ASSERT_EQUAL(cu.cuStreamEndCapture(c.stream, &graph), 0);
  CU_ASSERT_EQUAL(cu.cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  for (int i = 0; i < 2 && executable; i++) {
    fill(c.a, count_of(8, 9, 128), E4M3, 100 + (uint64_t)i);
    c.scales[0] = 0.5f + (float)i;
    CU_ASSERT(upload(&c));
    CU_ASSERT_EQUAL(cu.cuGraphLaunch(executable, c.stream), 0);
    CU_ASSERT(correct(&c, false));
  }
  if (executable)
    cu.cuGraphExecDestroy(executable);
  if (graph)
    cu.cuGraphDestroy(graph);
  cu.cuStreamDestroy_v2(c.stream);
  drop(&c);
}

static void graph_with_other_data(void) {
  if (!ready())
    return;
  graph_of(0);
  graph_of(4);
}

/* With another device's context current, and with none. */
static void devices_and_contexts(void) {
  int count = 0;
  if (!ready())
    return;
  cu.cuDeviceGetCount(&count);
  for (int device = 0; device < count && device < 2; device++) {
    struct call c = {.s = {2, 8, 64, 64}, .a_type = E4M3, .b_type = E4M3, .output_type = BF16, .device = device};
    CUhandle own = NULL, after = NULL;
    int handle;
    CU_ASSERT_EQUAL(cu.cuDeviceGet(&handle, device), 0);
    CU_ASSERT_EQUAL(cu.cuDevicePrimaryCtxRetain(&own, handle), 0);
    CUhandle others[] = {primary, NULL, own};
    for (int i = 0; i < 3; i++) {
      cu.cuCtxSetCurrent(own);
      CU_ASSERT(make(&c, 21));
      cu.cuCtxSetCurrent(others[i]);
      CU_ASSERT_EQUAL(run(&c), SGL_JIT_OK);
      cu.cuCtxGetCurrent(&after);
      CU_ASSERT_EQUAL(after, others[i]);
      cu.cuCtxSetCurrent(own);
      CU_ASSERT(correct(&c, false));
      drop(&c);
    }
  }
  printf("  %d device%s\n", count < 2 ? count : 2, count < 2 ? "" : "s");
  cu.cuCtxSetCurrent(primary);
}

enum { THREADS = 8, ROUNDS = 50 };

struct thread {
  pthread_t id;
  struct call c;
  int bad;
};

static void *use(void *argument) {
  struct thread *t = argument;
  char text[512];
  cu.cuCtxSetCurrent(primary);
  for (int i = 0; i < ROUNDS; i++)
    t->bad += run_into(&t->c, text, sizeof text) != SGL_JIT_OK;
  t->bad += cu.cuStreamSynchronize(t->c.stream) != 0;
  return NULL;
}

/* Half of them with the same shape, all at its first use. */
static void threads(void) {
  static struct thread all[THREADS];
  if (!ready())
    return;
  for (int i = 0; i < THREADS; i++) {
    all[i].c = (struct call){.s = {2, i % 2 ? 11 : 20 + i, 64, 80},
                             .a_type = E4M3,
                             .b_type = E4M3,
                             .output_type = BF16,
                             .workspace_size = 1 << 20};
    CU_ASSERT(make(&all[i].c, (uint64_t)i * 10 + 50));
    CU_ASSERT_EQUAL(cu.cuStreamCreate(&all[i].c.stream, 1), 0);
  }
  for (int i = 0; i < THREADS; i++)
    CU_ASSERT_EQUAL(pthread_create(&all[i].id, NULL, use, &all[i]), 0);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(all[i].id, NULL);
    CU_ASSERT_EQUAL(all[i].bad, 0);
    CU_ASSERT(correct(&all[i].c, false));
    cu.cuStreamDestroy_v2(all[i].c.stream);
    drop(&all[i].c);
  }
}

static const struct unit_test tests[] = {
    {"first_use_in_capture", first_use_in_capture},
    {"copied_scales_in_capture", copied_scales_in_capture},
    {"shapes", shapes},
    {"n_of_8", n_of_8},
    {"alignment_and_workspace", alignment_and_workspace},
    {"scales_anywhere", scales_anywhere},
    {"graph_with_other_data", graph_with_other_data},
    {"devices_and_contexts", devices_and_contexts},
    {"threads", threads},
};

int main(int argc, char **argv) {
  open_driver();
  return unit_main("gpu/bmm_fp8", tests, sizeof tests / sizeof tests[0], argc, argv);
}
