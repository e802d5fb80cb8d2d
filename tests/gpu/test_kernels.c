/* Both kernels on a real GPU against double sums on the CPU. Needs the CUDA driver and NVRTC; neither nvcc nor torch.
 */
#include "sgl_kernel_jit/sgl_kernel_jit.h"
#include "tests/unit.h"
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- the driver --- */

typedef int CUresult;
typedef void *CUhandle;
typedef unsigned long long CUdeviceptr;

static struct {
  CUresult (*cuInit)(unsigned);
  CUresult (*cuDriverGetVersion)(int *);
  CUresult (*cuDeviceGetCount)(int *);
  CUresult (*cuDeviceGet)(int *, int);
  CUresult (*cuDeviceGetName)(char *, int, int);
  CUresult (*cuDevicePrimaryCtxRetain)(CUhandle *, int);
  CUresult (*cuCtxCreate_v2)(CUhandle *, unsigned, int);
  CUresult (*cuCtxDestroy_v2)(CUhandle);
  CUresult (*cuCtxSetCurrent)(CUhandle);
  CUresult (*cuCtxGetCurrent)(CUhandle *);
  CUresult (*cuCtxSynchronize)(void);
  CUresult (*cuMemAlloc_v2)(CUdeviceptr *, size_t);
  CUresult (*cuMemFree_v2)(CUdeviceptr);
  CUresult (*cuMemcpyHtoD_v2)(CUdeviceptr, const void *, size_t);
  CUresult (*cuMemcpyDtoH_v2)(void *, CUdeviceptr, size_t);
  CUresult (*cuMemsetD8_v2)(CUdeviceptr, unsigned char, size_t);
  CUresult (*cuStreamCreate)(CUhandle *, unsigned);
  CUresult (*cuStreamDestroy_v2)(CUhandle);
  CUresult (*cuStreamSynchronize)(CUhandle);
  CUresult (*cuStreamBeginCapture_v2)(CUhandle, int);
  CUresult (*cuStreamEndCapture)(CUhandle, CUhandle *);
  CUresult (*cuGraphInstantiateWithFlags)(CUhandle *, CUhandle, unsigned long long);
  CUresult (*cuGraphLaunch)(CUhandle, CUhandle);
  CUresult (*cuGraphExecDestroy)(CUhandle);
  CUresult (*cuGraphDestroy)(CUhandle);
} cu;

static CUhandle primary;
static char unavailable[128];

static void open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    snprintf(unavailable, sizeof unavailable, "no CUDA driver on this machine");
    return;
  }
#define NAMED(name)                                                                                                    \
  { (void **)(uintptr_t)&cu.name, #name }
  const struct {
    void **function;
    const char *name;
  } all[] = {NAMED(cuInit),
             NAMED(cuDriverGetVersion),
             NAMED(cuDeviceGetCount),
             NAMED(cuDeviceGet),
             NAMED(cuDeviceGetName),
             NAMED(cuDevicePrimaryCtxRetain),
             NAMED(cuCtxCreate_v2),
             NAMED(cuCtxDestroy_v2),
             NAMED(cuCtxSetCurrent),
             NAMED(cuCtxGetCurrent),
             NAMED(cuCtxSynchronize),
             NAMED(cuMemAlloc_v2),
             NAMED(cuMemFree_v2),
             NAMED(cuMemcpyHtoD_v2),
             NAMED(cuMemcpyDtoH_v2),
             NAMED(cuMemsetD8_v2),
             NAMED(cuStreamCreate),
             NAMED(cuStreamDestroy_v2),
             NAMED(cuStreamSynchronize),
             NAMED(cuStreamBeginCapture_v2),
             NAMED(cuStreamEndCapture),
             NAMED(cuGraphInstantiateWithFlags),
             NAMED(cuGraphLaunch),
             NAMED(cuGraphExecDestroy),
             NAMED(cuGraphDestroy)};
#undef NAMED
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (!(*all[i].function = dlsym(library, all[i].name))) {
      snprintf(unavailable, sizeof unavailable, "the CUDA driver has no %s", all[i].name);
      return;
    }
  int device, version;
  char name[64];
  if (cu.cuInit(0) || cu.cuDeviceGet(&device, 0) || cu.cuDevicePrimaryCtxRetain(&primary, device) ||
      cu.cuDriverGetVersion(&version) || cu.cuDeviceGetName(name, sizeof name, device)) {
    snprintf(unavailable, sizeof unavailable, "no usable CUDA device");
    return;
  }
  cu.cuCtxSetCurrent(primary);
  printf("%s, driver %d.%d\n", name, version / 1000, version % 1000 / 10);
}

/* --- the data: one pool of random bf16 for all weights, one for all activations --- */

enum { MAX_TOKENS = 64, MAX_K = 7168, MAX_N = 4096, GUARD = 4096, THREADS = 16 };
#define POOL ((size_t)MAX_N * MAX_K)

static uint16_t *weights, *activations;
static CUdeviceptr weights_device, activations_device, output_device; /* the output between two guards */
#define OUTPUT_BYTES ((size_t)MAX_TOKENS * MAX_N * 4)
static unsigned char *output_host; /* with its guards */

static float from_bf16(uint16_t b) {
  uint32_t bits = (uint32_t)b << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* Nearly normal: the sum of the eight bytes of a random number, scaled to a variance of 1, cut to bf16. */
static void fill(uint16_t *p, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t r = seed ^ seed >> 29;
    r *= 0xbf58476d1ce4e5b9u;
    r ^= r >> 32;
    int sum = 0;
    for (int byte = 0; byte < 8; byte++)
      sum += (int)(r >> 8 * byte & 255);
    float f = (float)(sum - 1020) / 209.0f;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    p[i] = (uint16_t)(bits >> 16);
  }
}

struct slice {
  pthread_t thread;
  int first, last, n, k, tokens;
  double *result; /* [tokens][n] */
};

static void *fill_slice(void *argument) {
  struct slice *s = argument;
  size_t from = POOL / THREADS * (size_t)s->first, to = s->first == THREADS - 1 ? POOL : from + POOL / THREADS;
  fill(weights + from, to - from, (uint64_t)s->first + 1);
  return NULL;
}

static void *dot_slice(void *argument) {
  struct slice *s = argument;
  float *w = malloc((size_t)s->k * sizeof *w), *a = malloc((size_t)s->tokens * (size_t)s->k * sizeof *a);
  for (size_t i = 0; i < (size_t)s->tokens * (size_t)s->k; i++)
    a[i] = from_bf16(activations[i]);
  for (int n = s->first; n < s->last; n++) {
    for (int k = 0; k < s->k; k++)
      w[k] = from_bf16(weights[(size_t)n * (size_t)s->k + (size_t)k]);
    for (int m = 0; m < s->tokens; m++) {
      const float *row = a + (size_t)m * (size_t)s->k;
      double sum[4] = {0, 0, 0, 0};
      for (int k = 0; k < s->k; k += 4)
        for (int j = 0; j < 4; j++)
          sum[j] += (double)w[k + j] * (double)row[k + j];
      s->result[(size_t)m * (size_t)s->n + (size_t)n] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
  }
  free(w);
  free(a);
  return NULL;
}

static void on_all_threads(void *(*run)(void *), struct slice *slices) {
  for (int i = 0; i < THREADS; i++)
    pthread_create(&slices[i].thread, NULL, run, &slices[i]);
  for (int i = 0; i < THREADS; i++)
    pthread_join(slices[i].thread, NULL);
}

/* [MAX_TOKENS][n] in double, of the first n rows of k weights and the first rows of k activations. */
static double *expected(int n, int k) {
  double *result = malloc((size_t)MAX_TOKENS * (size_t)n * sizeof *result);
  struct slice slices[THREADS];
  for (int i = 0; i < THREADS; i++)
    slices[i] = (struct slice){.first = n * i / THREADS,
                               .last = n * (i + 1) / THREADS,
                               .n = n,
                               .k = k,
                               .tokens = MAX_TOKENS,
                               .result = result};
  on_all_threads(dot_slice, slices);
  return result;
}

/* Fills the pools, here and on the device. */
static bool make_data(void) {
  weights = malloc(POOL * 2);
  activations = malloc((size_t)MAX_TOKENS * MAX_K * 2);
  output_host = malloc(OUTPUT_BYTES + 2 * GUARD);
  struct slice slices[THREADS];
  for (int i = 0; i < THREADS; i++)
    slices[i] = (struct slice){.first = i};
  on_all_threads(fill_slice, slices);
  fill(activations, (size_t)MAX_TOKENS * MAX_K, 99);
  return cu.cuMemAlloc_v2(&weights_device, POOL * 2) == 0 &&
         cu.cuMemAlloc_v2(&activations_device, (size_t)MAX_TOKENS * MAX_K * 2) == 0 &&
         cu.cuMemAlloc_v2(&output_device, OUTPUT_BYTES + 2 * GUARD) == 0 &&
         cu.cuMemcpyHtoD_v2(weights_device, weights, POOL * 2) == 0 &&
         cu.cuMemcpyHtoD_v2(activations_device, activations, (size_t)MAX_TOKENS * MAX_K * 2) == 0;
}

/* False, and the test is skipped, where there is no GPU. */
static bool prepare(void) {
  static bool made;
  if (unavailable[0]) {
    UNIT_SKIP("%s", unavailable);
    return false;
  }
  made = made || make_data();
  CU_ASSERT_FATAL(made);
  return true;
}

/* --- a call --- */

struct call {
  bool fused, f32;
  int tokens, n, k;
  CUdeviceptr output; /* 0: output_device behind its guard */
  void *stream;
};

static _Thread_local char message[512];

static sgl_jit_status run(const struct call *c) {
  int64_t out_sizes[2] = {c->tokens, c->n}, out_strides[2] = {c->n, 1};
  int64_t a_sizes[2] = {c->tokens, c->k}, a_strides[2] = {c->k, 1};
  int64_t w_sizes[2] = {c->n, c->k}, w_strides[2] = {c->k, 1};
  int64_t wt_sizes[2] = {c->k, c->n}, wt_strides[2] = {1, c->k};
  sgl_jit_tensor output = {(void *)(uintptr_t)(c->output ? c->output : output_device + GUARD),
                           c->f32 ? SGL_JIT_DTYPE_FLOAT32 : SGL_JIT_DTYPE_BFLOAT16,
                           SGL_JIT_DEVICE_CUDA,
                           0,
                           2,
                           out_sizes,
                           out_strides};
  sgl_jit_tensor a = {
      (void *)(uintptr_t)activations_device, SGL_JIT_DTYPE_BFLOAT16, SGL_JIT_DEVICE_CUDA, 0, 2, a_sizes, a_strides};
  sgl_jit_tensor w = {(void *)(uintptr_t)weights_device, SGL_JIT_DTYPE_BFLOAT16,           SGL_JIT_DEVICE_CUDA, 0, 2,
                      c->fused ? wt_sizes : w_sizes,     c->fused ? wt_strides : w_strides};
  message[0] = '\0';
  sgl_jit_status status = c->fused ? sgl_jit_dsv3_fused_a_gemm(&output, &a, &w, c->stream, message, sizeof message)
                                   : sgl_jit_dsv3_router_gemm(&output, &a, &w, c->stream, message, sizeof message);
  if (status != SGL_JIT_OK)
    fprintf(stderr, "  %s\n", message);
  return status;
}

static size_t output_size(const struct call *c) {
  return (size_t)c->tokens * (size_t)c->n * (c->f32 ? 4 : 2);
}

/* Runs it on a poisoned output and brings the output, guards included, to output_host. */
static bool run_and_fetch(const struct call *c) {
  size_t bytes = output_size(c) + 2 * GUARD;
  if (cu.cuMemsetD8_v2(output_device, 0xff, bytes) || run(c) != SGL_JIT_OK || cu.cuCtxSynchronize())
    return false;
  return cu.cuMemcpyDtoH_v2(output_host, output_device, bytes) == 0;
}

static bool guards_intact(const struct call *c) {
  const unsigned char *after = output_host + GUARD + output_size(c);
  for (int i = 0; i < GUARD; i++)
    if (output_host[i] != 0xff || after[i] != 0xff)
      return false;
  return true;
}

static double value(const struct call *c, size_t i) {
  return c->f32 ? (double)((float *)(output_host + GUARD))[i]
                : (double)from_bf16(((uint16_t *)(output_host + GUARD))[i]);
}

struct errors {
  double square, reference_square, largest; /* largest: in units of what one output may be off */
};

static void compare(const struct call *c, const double *reference, struct errors *e) {
  double sigma = sqrt((double)c->k);
  for (size_t i = 0; i < (size_t)c->tokens * (size_t)c->n; i++) {
    double want = reference[i], error = fabs(value(c, i) - want);
    double allowed = (c->fused ? 1e-5 : 2e-6) * sigma + (c->f32 ? 0 : fabs(want) / 256);
    e->square += error * error;
    e->reference_square += want * want;
    if (!(error / allowed <= e->largest)) /* a NaN is the largest */
      e->largest = error / allowed;
  }
}

static const int token_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 33, 64};
#define TOKEN_COUNTS (sizeof token_counts / sizeof token_counts[0])

/* One shape with every number of tokens: right, inside its bounds, the same twice, and each row independent of the
 * number of rows. */
static void check_shape(struct call c, const double *reference) {
  struct errors e = {0, 0, 0};
  unsigned wrong = 0;
  c.tokens = MAX_TOKENS;
  CU_ASSERT_FATAL(run_and_fetch(&c));
  size_t bytes = output_size(&c);
  unsigned char *all = malloc(bytes);
  memcpy(all, output_host + GUARD, bytes);
  for (size_t i = 0; i < TOKEN_COUNTS; i++) {
    c.tokens = token_counts[i];
    CU_ASSERT_FATAL(run_and_fetch(&c));
    wrong += !guards_intact(&c);
    wrong += memcmp(all, output_host + GUARD, output_size(&c)) != 0;
    compare(&c, reference, &e);
  }
  free(all);
  double norm = sqrt(e.square / e.reference_square);
  /* The norm error of rounding alone is 1.66e-3 for bf16; a few hundred values may lie above that by chance. */
  double bound = c.f32 ? 2e-7 : (size_t)c.n * MAX_TOKENS >= 16384 ? 1.7e-3 : 1.9e-3;
  printf("  %-7s %4d x %4d %s: norm error %.2e, largest %.2f of what is allowed\n", c.fused ? "fused_a" : "router", c.n,
         c.k, c.f32 ? "f32 " : "bf16", norm, e.largest);
  CU_ASSERT_EQUAL(wrong, 0);
  CU_ASSERT(norm <= bound);
  CU_ASSERT(e.largest <= 1.0);
}

static void router(void) {
  static const int experts[] = {8, 128, 256, 384, 1024}, widths[] = {256, 1024, 6144, 7168};
  for (int k = 0; k < 4 && prepare(); k++) {
    for (int n = 0; n < 5; n++) {
      double *reference = expected(experts[n], widths[k]);
      for (int f32 = 0; f32 < 2; f32++)
        check_shape((struct call){.f32 = f32, .n = experts[n], .k = widths[k]}, reference);
      free(reference);
    }
  }
}

static void fused_a(void) {
  static const int outs[] = {16, 576, 2112, 4096}, widths[] = {256, 2048, 6144, 7168};
  for (int k = 0; k < 4 && prepare(); k++) {
    for (int n = 0; n < 4; n++) {
      double *reference = expected(outs[n], widths[k]);
      check_shape((struct call){.fused = true, .n = outs[n], .k = widths[k]}, reference);
      free(reference);
    }
  }
}

/* No warps' work divides evenly here: the last turns are partly idle. */
static void odd_widths(void) {
  static const int widths[] = {512, 768, 2816, 4352, 6912};
  for (int k = 0; k < 5 && prepare(); k++) {
    double *reference = expected(264, widths[k]);
    check_shape((struct call){.f32 = true, .n = 264, .k = widths[k]}, reference);
    free(reference);
    reference = expected(1040, widths[k]);
    check_shape((struct call){.fused = true, .n = 1040, .k = widths[k]}, reference);
    free(reference);
  }
}

static void zero_tokens(void) {
  if (!prepare())
    return;
  for (int fused = 0; fused < 2; fused++) {
    struct call c = {.fused = fused, .n = fused ? 2112 : 256, .k = 7168};
    CU_ASSERT(run_and_fetch(&c));
    CU_ASSERT(guards_intact(&c));
  }
}

/* An infinity or NaN in one activation row reaches all outputs of that row, and no other. */
static void not_finite(void) {
  if (!prepare())
    return;
  for (int fused = 0; fused < 2; fused++) {
    struct call c = {.fused = fused, .f32 = !fused, .tokens = 7, .n = fused ? 2112 : 256, .k = 7168};
    size_t row = (size_t)c.n * (c.f32 ? 4 : 2), bytes = row * (size_t)c.tokens;
    unsigned char *clean = malloc(bytes);
    CU_ASSERT_FATAL(run_and_fetch(&c));
    memcpy(clean, output_host + GUARD, bytes);
    const uint16_t bad[] = {0x7f80, 0xff80, 0x7fc0}; /* inf, -inf, NaN in bf16 */
    const CUdeviceptr place = activations_device + (3 * 7168 + 5001) * 2;
    for (int i = 0; i < 3; i++) {
      unsigned wrong = 0;
      CU_ASSERT_FATAL(cu.cuMemcpyHtoD_v2(place, &bad[i], 2) == 0);
      CU_ASSERT_FATAL(run_and_fetch(&c));
      for (int n = 0; n < c.n; n++) {
        double have = value(&c, (size_t)3 * (size_t)c.n + (size_t)n);
        float w = from_bf16(weights[(size_t)n * 7168 + 5001]);
        double want = (double)from_bf16(bad[i]) * (double)w;
        wrong += isnan(want) ? !isnan(have) : have != want;
      }
      memcpy(output_host + GUARD + 3 * row, clean + 3 * row, row);
      wrong += memcmp(output_host + GUARD, clean, bytes) != 0;
      CU_ASSERT_EQUAL(wrong, 0);
    }
    CU_ASSERT_FATAL(cu.cuMemcpyHtoD_v2(place, &activations[3 * 7168 + 5001], 2) == 0);
    free(clean);
  }
}

/* --- refused calls launch nothing --- */

static void refused(void) {
  if (!prepare())
    return;
  CU_ASSERT_FATAL(cu.cuMemsetD8_v2(output_device, 0xff, OUTPUT_BYTES + 2 * GUARD) == 0);
  int64_t out_sizes[2] = {4, 256}, out_strides[2] = {256, 1}, a_sizes[2] = {4, 7168}, a_strides[2] = {7168, 1};
  int64_t w_sizes[2] = {256, 7168}, w_strides[2] = {7168, 1};
  char *base = (char *)(uintptr_t)(output_device + GUARD);
  sgl_jit_tensor output = {base, SGL_JIT_DTYPE_FLOAT32, SGL_JIT_DEVICE_CUDA, 0, 2, out_sizes, out_strides};
  sgl_jit_tensor a = {
      (void *)(uintptr_t)activations_device, SGL_JIT_DTYPE_BFLOAT16, SGL_JIT_DEVICE_CUDA, 0, 2, a_sizes, a_strides};
  sgl_jit_tensor w = {
      (void *)(uintptr_t)weights_device, SGL_JIT_DTYPE_BFLOAT16, SGL_JIT_DEVICE_CUDA, 0, 2, w_sizes, w_strides};
#define REFUSED(part)                                                                                                  \
  CU_ASSERT_EQUAL(sgl_jit_dsv3_router_gemm(&output, &a, &w, NULL, message, sizeof message),                            \
                  SGL_JIT_ERROR_INVALID_ARGUMENT);                                                                     \
  UNIT_CONTAINS(message, part)
  a_strides[0] = 14336;
  REFUSED("hidden_states must be packed");
  a_strides[0] = 7168;
  out_sizes[1] = 384;
  REFUSED("output must have the sizes (4, 256)");
  out_sizes[1] = 256;
  output.data = base + 8;
  REFUSED("output must start at a multiple of 16 bytes");
  output.data = base;
  w.device_index = 1;
  REFUSED("router_weights must be on cuda:0");
  int count = 0;
  cu.cuDeviceGetCount(&count);
  output.device_index = a.device_index = w.device_index = count;
  REFUSED("there is no cuda:");
  CU_ASSERT_FATAL(cu.cuCtxSynchronize() == 0);
  CU_ASSERT_FATAL(cu.cuMemcpyDtoH_v2(output_host, output_device, OUTPUT_BYTES) == 0);
  bool touched = false;
  for (size_t i = 0; i < OUTPUT_BYTES; i++)
    touched = touched || output_host[i] != 0xff;
  CU_ASSERT(!touched);
}

/* --- contexts, streams, capture, threads --- */

static bool right(const struct call *c, const double *reference) {
  struct errors e = {0, 0, 0};
  compare(c, reference, &e);
  return e.largest <= 1.0;
}

static void contexts(void) {
  if (!prepare())
    return;
  struct call c = {.f32 = true, .tokens = 5, .n = 256, .k = 1024};
  double *reference = expected(c.n, c.k);
  CUhandle current = &current, other;
  CU_ASSERT_FATAL(cu.cuMemsetD8_v2(output_device, 0xff, OUTPUT_BYTES) == 0);
  cu.cuCtxSetCurrent(NULL); /* none: the device's primary context serves, and is gone again */
  CU_ASSERT_EQUAL(run(&c), SGL_JIT_OK);
  cu.cuCtxGetCurrent(&current);
  CU_ASSERT_PTR_NULL(current);
  cu.cuCtxSetCurrent(primary);
  CU_ASSERT_FATAL(cu.cuCtxSynchronize() == 0);
  CU_ASSERT_FATAL(cu.cuMemcpyDtoH_v2(output_host, output_device, OUTPUT_BYTES) == 0);
  CU_ASSERT(right(&c, reference));
  /* Another context of the device: it serves, with memory of its own. */
  CU_ASSERT_FATAL(cu.cuCtxCreate_v2(&other, 0, 0) == 0);
  CUdeviceptr kept[3] = {weights_device, activations_device, output_device};
  CU_ASSERT_FATAL(cu.cuMemAlloc_v2(&weights_device, 256 * 1024 * 2) == 0);
  CU_ASSERT_FATAL(cu.cuMemAlloc_v2(&activations_device, MAX_TOKENS * 1024 * 2) == 0);
  CU_ASSERT_FATAL(cu.cuMemAlloc_v2(&output_device, MAX_TOKENS * 256 * 4 + 2 * GUARD) == 0);
  CU_ASSERT_FATAL(cu.cuMemcpyHtoD_v2(weights_device, weights, 256 * 1024 * 2) == 0);
  CU_ASSERT_FATAL(cu.cuMemcpyHtoD_v2(activations_device, activations, MAX_TOKENS * 1024 * 2) == 0);
  CU_ASSERT(run_and_fetch(&c));
  CU_ASSERT(right(&c, reference));
  cu.cuCtxGetCurrent(&current);
  CU_ASSERT_PTR_EQUAL(current, other);
  cu.cuCtxDestroy_v2(other);
  weights_device = kept[0];
  activations_device = kept[1];
  output_device = kept[2];
  cu.cuCtxSetCurrent(primary);
  CU_ASSERT(run_and_fetch(&c)); /* and the first one still works */
  CU_ASSERT(right(&c, reference));
  free(reference);
}

static void first_use_in_capture(void) {
  if (!prepare())
    return;
  for (int mode = 0; mode < 3; mode++) {                                        /* global, thread-local, relaxed */
    struct call c = {.f32 = true, .tokens = 11, .n = 40 + 8 * mode, .k = 2304}; /* no other test has this shape */
    double *reference = expected(c.n, c.k);
    CUhandle graph = NULL, executable = NULL;
    CU_ASSERT_FATAL(cu.cuMemsetD8_v2(output_device, 0xff, OUTPUT_BYTES) == 0);
    CU_ASSERT_FATAL(cu.cuStreamCreate(&c.stream, 1) == 0);
    CU_ASSERT_FATAL(cu.cuStreamBeginCapture_v2(c.stream, mode) == 0);
    sgl_jit_status status = run(&c);
    CU_ASSERT_EQUAL(cu.cuStreamEndCapture(c.stream, &graph), 0); /* never broken by us */
    if (status == SGL_JIT_ERROR_CAPTURE) {
      UNIT_CONTAINS(message, "before the capture");
      printf("  this driver loads no code in capture mode %d\n", mode);
    } else {
      CU_ASSERT_EQUAL(status, SGL_JIT_OK);
      CU_ASSERT_FATAL(cu.cuGraphInstantiateWithFlags(&executable, graph, 0) == 0);
      for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(cu.cuGraphLaunch(executable, c.stream), 0);
      CU_ASSERT_FATAL(cu.cuStreamSynchronize(c.stream) == 0);
      CU_ASSERT_FATAL(cu.cuMemcpyDtoH_v2(output_host, output_device, OUTPUT_BYTES) == 0);
      CU_ASSERT(right(&c, reference));
      cu.cuGraphExecDestroy(executable);
    }
    cu.cuGraphDestroy(graph);
    cu.cuStreamDestroy_v2(c.stream);
    free(reference);
  }
}

struct worker {
  pthread_t thread;
  struct call call;
  sgl_jit_status status;
};

static void *work(void *argument) {
  struct worker *w = argument;
  cu.cuCtxSetCurrent(primary);
  w->status = run(&w->call);
  cu.cuStreamSynchronize(w->call.stream);
  return NULL;
}

static void first_use_by_eight_threads(void) {
  if (!prepare())
    return;
  struct worker workers[8];
  double *reference = expected(72, 3072);
  for (int i = 0; i < 8; i++) {
    workers[i] = (struct worker){.call = {.f32 = true, .tokens = i + 1, .n = 72, .k = 3072}};
    CU_ASSERT_FATAL(cu.cuMemAlloc_v2(&workers[i].call.output, 8 * 72 * 4) == 0);
    CU_ASSERT_FATAL(cu.cuStreamCreate(&workers[i].call.stream, 1) == 0);
  }
  for (int i = 0; i < 8; i++)
    pthread_create(&workers[i].thread, NULL, work, &workers[i]);
  for (int i = 0; i < 8; i++) {
    pthread_join(workers[i].thread, NULL);
    CU_ASSERT_EQUAL(workers[i].status, SGL_JIT_OK);
    CU_ASSERT_EQUAL(cu.cuMemcpyDtoH_v2(output_host + GUARD, workers[i].call.output, output_size(&workers[i].call)), 0);
    CU_ASSERT(right(&workers[i].call, reference));
    cu.cuMemFree_v2(workers[i].call.output);
    cu.cuStreamDestroy_v2(workers[i].call.stream);
  }
  free(reference);
}

/* --- the cache, in processes of their own --- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The child: one first call. Exit status: the status of the library, or 99 for a wrong result. */
static int child(void) {
  struct call c = {.f32 = true, .tokens = 3, .n = 256, .k = 7168};
  if (unavailable[0] || !make_data())
    return 98;
  double start = now();
  sgl_jit_status status = run(&c);
  double first = now() - start;
  if (status != SGL_JIT_OK)
    return (int)status;
  double *reference = expected(c.n, c.k);
  bool good = run_and_fetch(&c) && right(&c, reference);
  enum { CALLS = 1000 };
  start = now();
  for (int i = 0; i < CALLS; i++)
    good = good && run(&c) == SGL_JIT_OK;
  double later = (now() - start) / CALLS;
  cu.cuCtxSynchronize();
  printf("  first call %.1f ms, later ones %.2f us each on the CPU\n", first * 1e3, later * 1e6);
  fflush(stdout);
  free(reference);
  return good ? 0 : 99;
}

static int in_child(const char *cache, const char *nvrtc) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    setenv("SGL_KERNEL_JIT_CACHE_DIR", cache, 1);
    if (nvrtc)
      setenv("SGL_KERNEL_JIT_NVRTC", nvrtc, 1);
    setenv("SGL_TEST_CHILD", "1", 1);
    execl("/proc/self/exe", "test_kernels", (char *)NULL);
    _exit(97);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 96;
}

static void cold_and_warm(void) {
  if (!prepare())
    return;
  char folder[] = "/tmp/sgl-jit-test-XXXXXX", command[64];
  CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
  CU_ASSERT_EQUAL(in_child(folder, "/nonexistent"), SGL_JIT_ERROR_NO_COMPILER);
  CU_ASSERT_EQUAL(in_child(folder, NULL), 0);           /* compiles */
  CU_ASSERT_EQUAL(in_child(folder, NULL), 0);           /* reads */
  CU_ASSERT_EQUAL(in_child(folder, "/nonexistent"), 0); /* reads, and needs no compiler for it */
  snprintf(command, sizeof command, "rm -r %s", folder);
  CU_ASSERT_EQUAL(system(command), 0);
}

/* A child after a fork gets an error, not a crash. */
static void after_fork(void) {
  if (!prepare())
    return;
  struct call c = {.f32 = true, .tokens = 1, .n = 256, .k = 7168};
  CU_ASSERT_EQUAL(run(&c), SGL_JIT_OK);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0)
    _exit((int)run(&c));
  int status = -1;
  waitpid(pid, &status, 0);
  CU_ASSERT(WIFEXITED(status));
  CU_ASSERT_EQUAL(WEXITSTATUS(status), SGL_JIT_ERROR_NO_DRIVER);
  CU_ASSERT_EQUAL(run(&c), SGL_JIT_OK);
}

static const struct unit_test tests[] = {
    {"router", router},
    {"fused_a", fused_a},
    {"odd_widths", odd_widths},
    {"zero_tokens", zero_tokens},
    {"not_finite", not_finite},
    {"refused", refused},
    {"contexts", contexts},
    {"first_use_in_capture", first_use_in_capture},
    {"first_use_by_eight_threads", first_use_by_eight_threads},
    {"cold_and_warm", cold_and_warm},
    {"after_fork", after_fork},
};

int main(int argc, char **argv) {
  if (getenv("SGL_TEST_CHILD")) {
    open_driver();
    return child();
  }
  char folder[] = "/tmp/sgl-jit-test-XXXXXX", command[64];
  if (!mkdtemp(folder))
    return 2;
  setenv("SGL_KERNEL_JIT_CACHE_DIR", folder, 1); /* before the library's first use */
  open_driver();
  int status = unit_main("gpu/kernels", tests, sizeof tests / sizeof tests[0], argc, argv);
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command) == 0 ? status : 2;
}
