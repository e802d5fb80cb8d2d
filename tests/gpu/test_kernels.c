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

enum { MAX_TOKENS = 64, MAX_K = 16384, MAX_N = 4096, GUARD = 4096, THREADS = 16 };
#define POOL ((size_t)MAX_N * 7168) /* weights: the largest shape of the grid */
#define ACTIVATIONS ((size_t)MAX_TOKENS * MAX_K)

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

/* Operands within the pools. */
struct place {
  size_t weights, activations; /* first elements */
};

struct slice {
  pthread_t thread;
  int first, last, n, k, tokens;
  struct place at;
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
    a[i] = from_bf16(activations[s->at.activations + i]);
  for (int n = s->first; n < s->last; n++) {
    for (int k = 0; k < s->k; k++)
      w[k] = from_bf16(weights[s->at.weights + (size_t)n * (size_t)s->k + (size_t)k]);
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

/* [tokens][n] in double. */
static double *expected_at(int n, int k, int tokens, struct place at) {
  double *result = malloc((size_t)tokens * (size_t)n * sizeof *result);
  struct slice slices[THREADS];
  for (int i = 0; i < THREADS; i++)
    slices[i] = (struct slice){.first = n * i / THREADS,
                               .last = n * (i + 1) / THREADS,
                               .n = n,
                               .k = k,
                               .tokens = tokens,
                               .at = at,
                               .result = result};
  on_all_threads(dot_slice, slices);
  return result;
}

/* [MAX_TOKENS][n], of what lies first in the pools. */
static double *expected(int n, int k) {
  return expected_at(n, k, MAX_TOKENS, (struct place){0, 0});
}

/* Fills the pools, here and on the device. */
static bool make_data(void) {
  weights = malloc(POOL * 2);
  activations = malloc(ACTIVATIONS * 2);
  output_host = malloc(OUTPUT_BYTES + 2 * GUARD);
  struct slice slices[THREADS];
  for (int i = 0; i < THREADS; i++)
    slices[i] = (struct slice){.first = i};
  on_all_threads(fill_slice, slices);
  fill(activations, ACTIVATIONS, 99);
  return cu.cuMemAlloc_v2(&weights_device, POOL * 2) == 0 &&
         cu.cuMemAlloc_v2(&activations_device, ACTIVATIONS * 2) == 0 &&
         cu.cuMemAlloc_v2(&output_device, OUTPUT_BYTES + 2 * GUARD) == 0 &&
         cu.cuMemcpyHtoD_v2(weights_device, weights, POOL * 2) == 0 &&
         cu.cuMemcpyHtoD_v2(activations_device, activations, ACTIVATIONS * 2) == 0;
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
  struct place at;
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
  sgl_jit_tensor a = {(void *)(uintptr_t)(activations_device + c->at.activations * 2),
                      SGL_JIT_DTYPE_BFLOAT16,
                      SGL_JIT_DEVICE_CUDA,
                      0,
                      2,
                      a_sizes,
                      a_strides};
  sgl_jit_tensor w = {(void *)(uintptr_t)(weights_device + c->at.weights * 2),
                      SGL_JIT_DTYPE_BFLOAT16,
                      SGL_JIT_DEVICE_CUDA,
                      0,
                      2,
                      c->fused ? wt_sizes : w_sizes,
                      c->fused ? wt_strides : w_strides};
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
  double square, reference_square, rounding_square; /* rounding: of the exact result to the output's type */
  double largest;                                   /* in units of what one output may be off */
  size_t count;
};

static double rounded_to_bf16(double v) {
  float f = (float)v;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return (double)from_bf16((uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}

static void compare(const struct call *c, const double *reference, struct errors *e) {
  double sigma = sqrt((double)c->k);
  size_t count = (size_t)c->tokens * (size_t)c->n;
  for (size_t i = 0; i < count; i++) {
    double want = reference[i], error = fabs(value(c, i) - want);
    double allowed = (c->fused ? 1e-5 : 2e-6) * sigma + (c->f32 ? 0 : fabs(want) / 256);
    double rounding = c->f32 ? 0 : rounded_to_bf16(want) - want;
    e->square += error * error;
    e->reference_square += want * want;
    e->rounding_square += rounding * rounding;
    if (!(error / allowed <= e->largest)) /* a NaN is the largest */
      e->largest = error / allowed;
  }
  e->count += count;
}

/* The error as the norm of the difference over the norm of the exact result. Float32: 2e-7, and more where so few
 * outputs are that their norm scatters. Bfloat16: the rounding of the output makes nearly all of it, 1.67e-3 at most
 * where outputs are many, up to 1.9e-3 where they are few; so what counts is that it is not larger than that of the
 * exact result rounded, and 1.75e-3 holds where outputs are many. */
static bool good(const struct call *c, const struct errors *e) {
  double norm = sqrt(e->square / e->reference_square);
  if (!(e->largest <= 1.0))
    return false;
  if (c->f32)
    return norm <= 2e-7 * (1 + 3 / sqrt((double)e->count));
  return e->square <= 1.01 * 1.01 * e->rounding_square && (e->count < 16384 || norm <= 1.75e-3);
}

static void print_errors(const struct call *c, const char *mode, const struct errors *e) {
  printf("  %-7s %4d x %5d %s %-9s: norm error %.2e, largest %.2f of what is allowed\n",
         c->fused ? "fused_a" : "router", c->n, c->k, c->f32 ? "f32 " : "bf16", mode,
         sqrt(e->square / e->reference_square), e->largest);
}

/* --- modes --- */

static bool set_pdl(sgl_jit_pdl pdl) {
  return sgl_jit_set_pdl(pdl, message, sizeof message) == SGL_JIT_OK;
}

static bool set_modes(bool invariant, bool pdl) {
  return sgl_jit_set_batch_invariant(invariant, message, sizeof message) == SGL_JIT_OK &&
         set_pdl(pdl ? SGL_JIT_PDL_ON : SGL_JIT_PDL_OFF);
}

/* --- the grid of shapes, and random ones --- */

static const struct shape {
  bool fused, f32;
  int n, k;
} grid_shapes[] = {
    /* the router: the models' shapes, the edges of n, every K for 256 experts, the edges together */
    {false, true, 256, 7168},
    {false, false, 256, 7168},
    {false, true, 384, 7168},
    {false, false, 384, 7168},
    {false, true, 128, 7168},
    {false, true, 8, 7168},
    {false, false, 8, 7168},
    {false, true, 1024, 7168},
    {false, false, 1024, 7168},
    {false, true, 520, 7168},
    {false, true, 264, 7168},
    {false, false, 136, 7168},
    {false, true, 24, 7168},
    {false, false, 16, 7168},
    {false, true, 256, 256},
    {false, true, 256, 512},
    {false, true, 256, 768},
    {false, true, 256, 1024},
    {false, true, 256, 1792},
    {false, true, 256, 2048},
    {false, true, 256, 3072},
    {false, true, 256, 4096},
    {false, true, 256, 5120},
    {false, true, 256, 6144},
    {false, true, 256, 7424},
    {false, true, 256, 8192},
    {false, true, 256, 16384},
    {false, true, 8, 256},
    {false, false, 8, 256},
    {false, true, 8, 16384},
    {false, false, 1024, 256},
    {false, true, 1024, 16384},
    {false, true, 384, 256},
    {false, true, 384, 6144},
    {false, false, 384, 7424},
    {false, false, 384, 8192},
    {false, true, 16, 512},
    {false, false, 24, 768},
    {false, true, 136, 1024},
    {false, true, 264, 1792},
    {false, false, 264, 16384},
    {false, false, 520, 3072},
    {false, true, 520, 7424},
    /* fused A */
    {true, false, 2112, 7168},
    {true, false, 2112, 256},
    {true, false, 2112, 1024},
    {true, false, 2112, 4096},
    {true, false, 2112, 5120},
    {true, false, 2112, 6144},
    {true, false, 2112, 7424},
    {true, false, 2112, 8192},
    {true, false, 16, 256},
    {true, false, 16, 7168},
    {true, false, 32, 7168},
    {true, false, 32, 16384},
    {true, false, 48, 768},
    {true, false, 48, 7168},
    {true, false, 576, 512},
    {true, false, 576, 3072},
    {true, false, 576, 7168},
    {true, false, 1536, 1792},
    {true, false, 1536, 7168},
    {true, false, 1536, 16384},
    {true, false, 2624, 6144},
    {true, false, 3648, 7168},
    {true, false, 4096, 256},
    {true, false, 4096, 2048},
    {true, false, 4096, 7168},
};

/* Token counts of the grid: all of 1 to 17, and what lies around each multiple of 8 above. SGL_TEST_TOKENS=1,9,64 takes
 * others, for a run under compute-sanitizer. */
static int token_counts[MAX_TOKENS], token_count_n;

static void choose_tokens(void) {
  const char *text = getenv("SGL_TEST_TOKENS");
  for (char *end; text && *text && token_count_n < MAX_TOKENS; text = *end ? end + 1 : end) {
    long tokens = strtol(text, &end, 10);
    if (end == text || tokens < 1 || tokens > MAX_TOKENS || (*end && *end != ',')) {
      fprintf(stderr, "SGL_TEST_TOKENS: numbers from 1 to %d with commas between them, not '%s'\n", MAX_TOKENS, text);
      exit(2);
    }
    token_counts[token_count_n++] = (int)tokens;
  }
  for (int tokens = 1; !text && tokens <= MAX_TOKENS; tokens++)
    if (tokens <= 17 || tokens % 8 <= 1 || tokens % 8 == 7)
      token_counts[token_count_n++] = tokens;
}

/* The operands end where the pools end, so that compute-sanitizer sees a read past them. */
static struct place at_the_end(int n, int k, int tokens) {
  return (struct place){POOL - (size_t)n * (size_t)k, ACTIVATIONS - (size_t)tokens * (size_t)k};
}

/* Runs twice: right (into e), identical, nothing written beside the output. Leaves the output in output_host. The
 * number of faults. */
static unsigned run_twice(const struct call *c, const double *reference, struct errors *e, unsigned char *first) {
  if (!run_and_fetch(c))
    return 1;
  memcpy(first, output_host + GUARD, output_size(c));
  unsigned faults = !guards_intact(c);
  compare(c, reference, e);
  if (!run_and_fetch(c))
    return faults + 1;
  faults += !guards_intact(c);
  return faults + (memcmp(first, output_host + GUARD, output_size(c)) != 0);
}

/* One shape with all token counts, in both modes, and with PDL. */
static void check_shape(const struct shape *shape) {
  struct call c = {.fused = shape->fused, .f32 = shape->f32, .n = shape->n, .k = shape->k};
  double *reference = expected_at(c.n, c.k, MAX_TOKENS, at_the_end(c.n, c.k, MAX_TOKENS));
  unsigned char *first = malloc(OUTPUT_BYTES), *all = malloc(OUTPUT_BYTES);
  size_t row = (size_t)c.n * (c.f32 ? 4 : 2);
  unsigned dependent = 0, faults = 0, other_with_pdl = 0;
  for (int invariant = 0; invariant < 2; invariant++) {
    struct errors e = {0};
    CU_ASSERT_FATAL(set_modes(invariant, false));
    if (invariant) {
      c.tokens = MAX_TOKENS;
      c.at = at_the_end(c.n, c.k, MAX_TOKENS);
      CU_ASSERT_FATAL(run_and_fetch(&c));
      memcpy(all, output_host + GUARD, output_size(&c));
    }
    for (int i = 0; i < token_count_n; i++) {
      c.tokens = token_counts[i];
      c.at = at_the_end(c.n, c.k, c.tokens);
      size_t before = (size_t)(MAX_TOKENS - c.tokens); /* rows of the pool that this call leaves out */
      faults += run_twice(&c, reference + before * (size_t)c.n, &e, first);
      if (invariant) /* whatever the number of rows, and wherever the row stands among them */
        dependent += memcmp(all + before * row, first, output_size(&c)) != 0;
      CU_ASSERT_FATAL(set_modes(invariant, true));
      CU_ASSERT_FATAL(run_and_fetch(&c));
      other_with_pdl += memcmp(first, output_host + GUARD, output_size(&c)) != 0;
      faults += !guards_intact(&c);
      CU_ASSERT_FATAL(set_modes(invariant, false));
    }
    print_errors(&c, invariant ? "invariant" : "default", &e);
    CU_ASSERT(good(&c, &e));
  }
  set_modes(false, false);
  CU_ASSERT_EQUAL(faults, 0);
  CU_ASSERT_EQUAL(dependent, 0);
  CU_ASSERT_EQUAL(other_with_pdl, 0);
  free(all);
  free(first);
  free(reference);
}

static void grid(void) {
  for (size_t i = 0; i < sizeof grid_shapes / sizeof grid_shapes[0] && prepare(); i++)
    check_shape(&grid_shapes[i]);
}

static uint64_t random_state;

/* 0 to limit - 1 */
static int random_below(int limit) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int)((random_state >> 33) % (uint64_t)limit);
}

/* Any legal shape that the pools hold, small ones as often as large ones, its operands anywhere in the pools. */
static void check_random_shape(int number) {
  struct call c = {.fused = random_below(2)};
  c.f32 = !c.fused && random_below(2);
  c.k = 256 * (1 + random_below(random_below(2) ? 8 : MAX_K / 256));
  size_t most = POOL / (size_t)c.k;
  int step = c.fused ? 16 : 8, limit = c.fused ? MAX_N : 1024;
  if ((size_t)limit > most)
    limit = (int)most / step * step;
  c.n = step * (1 + random_below(random_below(2) && limit / step > 16 ? 16 : limit / step));
  c.tokens = 1 + random_below(random_below(2) ? 16 : MAX_TOKENS);
  c.at.weights = (size_t)random_below((int)((POOL - (size_t)c.n * (size_t)c.k) / 8) + 1) * 8;
  c.at.activations = (size_t)random_below((int)((ACTIVATIONS - (size_t)c.tokens * (size_t)c.k) / 8) + 1) * 8;
  double *reference = expected_at(c.n, c.k, c.tokens, c.at);
  unsigned char *first = malloc(OUTPUT_BYTES);
  for (int invariant = 0; invariant < 2; invariant++) {
    struct errors e = {0};
    CU_ASSERT_FATAL(set_modes(invariant, number % 2 == 1));
    unsigned faults = run_twice(&c, reference, &e, first);
    bool fine = good(&c, &e) && faults == 0;
    if (invariant && fine) { /* one row alone */
      struct call one = c;
      int which = random_below(c.tokens);
      one.tokens = 1;
      one.at.activations += (size_t)which * (size_t)c.k;
      fine = run_and_fetch(&one) &&
             memcmp(output_host + GUARD, first + (size_t)which * output_size(&one), output_size(&one)) == 0;
    }
    if (!fine) {
      printf("  random shape %d: %d tokens, PDL %s, weights at %zu, activations at %zu, %u faults\n", number, c.tokens,
             number % 2 ? "on" : "off", c.at.weights, c.at.activations, faults);
      print_errors(&c, invariant ? "invariant" : "default", &e);
    }
    CU_ASSERT(fine);
  }
  set_modes(false, false);
  free(first);
  free(reference);
}

enum { RANDOM_SHAPES = 200, SHARDS = 8 };

/* The shapes of one shard: every eighth one. Each shape draws from a state of its own, whatever ran before. */
static void random_shard(void) {
  uint64_t seed = strtoull(getenv("SGL_TEST_SEED"), NULL, 10);
  for (int i = atoi(getenv("SGL_TEST_SHARD")); i < RANDOM_SHAPES && prepare(); i += SHARDS) {
    random_state = seed + (uint64_t)i * 0x9e3779b97f4a7c15u;
    for (int warm_up = 0; warm_up < 4; warm_up++)
      random_below(2);
    check_random_shape(i);
  }
}

/* Most of the time goes into compiling 200 kernels: eight processes share them. */
static void random_shapes(void) {
  if (getenv("SGL_TEST_SHARD")) {
    random_shard();
    return;
  }
  if (!prepare())
    return;
  if (!getenv("SGL_TEST_SEED")) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)time(NULL));
    setenv("SGL_TEST_SEED", text, 1);
  }
  printf("  SGL_TEST_SEED=%s repeats these %d random shapes\n", getenv("SGL_TEST_SEED"), RANDOM_SHAPES);
  fflush(stdout);
  pid_t pids[SHARDS];
  for (int i = 0; i < SHARDS; i++)
    if ((pids[i] = fork()) == 0) {
      char text[12];
      snprintf(text, sizeof text, "%d", i);
      setenv("SGL_TEST_SHARD", text, 1);
      execl("/proc/self/exe", "test_kernels", "random_shapes", (char *)NULL);
      _exit(97);
    }
  for (int i = 0; i < SHARDS; i++) {
    int status = -1;
    waitpid(pids[i], &status, 0);
    CU_ASSERT(WIFEXITED(status));
    CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
  }
}

/* With PDL a kernel may start before the one that makes its activations has ended: it has to wait for it. */
static void pdl_chain(void) {
  if (!prepare())
    return;
  static const int counts[] = {1, 4, 8, 16, 33, 64};
  enum { MIDDLE = 2048, OUT = 256, K = 7168 };
  CUdeviceptr kept = activations_device, middle;
  CU_ASSERT_FATAL(cu.cuMemAlloc_v2(&middle, MAX_TOKENS * MIDDLE * 2) == 0);
  unsigned char *without = malloc(MAX_TOKENS * OUT * 4);
  for (int mode = 0; mode < 2; mode++)
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
      struct call make = {.fused = true, .tokens = counts[i], .n = MIDDLE, .k = K, .output = middle};
      struct call use = {.f32 = true, .tokens = counts[i], .n = OUT, .k = MIDDLE};
      CU_ASSERT_FATAL(cu.cuStreamCreate(&make.stream, 1) == 0);
      use.stream = make.stream;
      unsigned wrong = 0;
      for (int turn = 0; turn < 21; turn++) { /* the first without PDL */
        bool fine = set_modes(mode, turn > 0) && cu.cuMemsetD8_v2(middle, 0xff, MAX_TOKENS * MIDDLE * 2) == 0 &&
                    cu.cuMemsetD8_v2(output_device, 0xff, output_size(&use) + 2 * GUARD) == 0 &&
                    cu.cuCtxSynchronize() == 0;
        fine = fine && run(&make) == SGL_JIT_OK;
        activations_device = middle;
        fine = fine && run(&use) == SGL_JIT_OK;
        activations_device = kept;
        CU_ASSERT_FATAL(fine);
        CU_ASSERT_FATAL(cu.cuCtxSynchronize() == 0);
        CU_ASSERT_FATAL(cu.cuMemcpyDtoH_v2(output_host, output_device, output_size(&use) + 2 * GUARD) == 0);
        if (turn == 0)
          memcpy(without, output_host + GUARD, output_size(&use));
        wrong += memcmp(without, output_host + GUARD, output_size(&use)) != 0 || !guards_intact(&use);
      }
      for (size_t v = 0; v < (size_t)counts[i] * OUT; v++)
        wrong += isnan(((float *)without)[v]) != 0;
      CU_ASSERT_EQUAL(wrong, 0);
      cu.cuStreamDestroy_v2(make.stream);
    }
  set_modes(false, false);
  free(without);
  cu.cuMemFree_v2(middle);
}

/* The same two kernels in a graph: the edge between them is kept, whatever it says of overlap. */
static void pdl_graph(void) {
  if (!prepare())
    return;
  static const int counts[] = {1, 8, 64};
  enum { MIDDLE = 2048, OUT = 256, K = 7168 };
  CUdeviceptr kept = activations_device, middle;
  CU_ASSERT_FATAL(cu.cuMemAlloc_v2(&middle, MAX_TOKENS * MIDDLE * 2) == 0);
  unsigned char *without = malloc(MAX_TOKENS * OUT * 4);
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    struct call make = {.fused = true, .tokens = counts[i], .n = MIDDLE, .k = K, .output = middle};
    struct call use = {.f32 = true, .tokens = counts[i], .n = OUT, .k = MIDDLE};
    CUhandle graph = NULL, executable = NULL;
    CU_ASSERT_FATAL(cu.cuStreamCreate(&make.stream, 1) == 0);
    use.stream = make.stream;
    for (int captured = 0; captured < 2; captured++) { /* the first time without PDL, which also loads the kernels */
      CU_ASSERT_FATAL(set_modes(false, captured));
      CU_ASSERT_FATAL(!captured || cu.cuStreamBeginCapture_v2(make.stream, 0) == 0);
      bool fine = run(&make) == SGL_JIT_OK;
      activations_device = middle;
      fine = fine && run(&use) == SGL_JIT_OK;
      activations_device = kept;
      CU_ASSERT_FATAL(!captured || cu.cuStreamEndCapture(make.stream, &graph) == 0);
      CU_ASSERT_FATAL(fine);
      if (!captured) {
        CU_ASSERT_FATAL(cu.cuCtxSynchronize() == 0);
        CU_ASSERT_FATAL(cu.cuMemcpyDtoH_v2(without, output_device + GUARD, output_size(&use)) == 0);
      }
    }
    CU_ASSERT_FATAL(cu.cuGraphInstantiateWithFlags(&executable, graph, 0) == 0);
    unsigned wrong = 0;
    for (int turn = 0; turn < 20; turn++) {
      CU_ASSERT_FATAL(cu.cuMemsetD8_v2(middle, 0xff, MAX_TOKENS * MIDDLE * 2) == 0);
      CU_ASSERT_FATAL(cu.cuMemsetD8_v2(output_device, 0xff, output_size(&use) + 2 * GUARD) == 0);
      CU_ASSERT_FATAL(cu.cuCtxSynchronize() == 0);
      CU_ASSERT_FATAL(cu.cuGraphLaunch(executable, make.stream) == 0);
      CU_ASSERT_FATAL(cu.cuCtxSynchronize() == 0);
      CU_ASSERT_FATAL(cu.cuMemcpyDtoH_v2(output_host, output_device, output_size(&use) + 2 * GUARD) == 0);
      wrong += memcmp(without, output_host + GUARD, output_size(&use)) != 0 || !guards_intact(&use);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    cu.cuGraphExecDestroy(executable);
    cu.cuGraphDestroy(graph);
    cu.cuStreamDestroy_v2(make.stream);
  }
  set_modes(false, false);
  free(without);
  cu.cuMemFree_v2(middle);
}

/* Without prefetch even the weights may come from the kernel before. */
static void pdl_weights(void) {
  if (!prepare())
    return;
  static const int counts[] = {1, 2, 3, 16, 33, 64};
  enum { OUT = 64, K = 2048 }; /* the first kernel's output, [OUT][K], is the second one's weight */
  CUdeviceptr kept = weights_device, made;
  CU_ASSERT_FATAL(cu.cuMemAlloc_v2(&made, OUT * K * 2) == 0);
  unsigned char *without = malloc(MAX_TOKENS * OUT * 4);
  for (int fused = 0; fused < 2; fused++)
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
      struct call make = {.fused = true, .tokens = OUT, .n = K, .k = 7168, .output = made};
      struct call use = {.fused = fused, .f32 = !fused, .tokens = counts[i], .n = OUT, .k = K};
      CU_ASSERT_FATAL(cu.cuStreamCreate(&make.stream, 1) == 0);
      use.stream = make.stream;
      unsigned wrong = 0;
      for (int turn = 0; turn < 21; turn++) { /* the first without PDL */
        bool fine = set_pdl(turn > 0 ? SGL_JIT_PDL_NO_PREFETCH : SGL_JIT_PDL_OFF) &&
                    cu.cuMemsetD8_v2(made, 0xff, OUT * K * 2) == 0 &&
                    cu.cuMemsetD8_v2(output_device, 0xff, output_size(&use) + 2 * GUARD) == 0 &&
                    cu.cuCtxSynchronize() == 0 && run(&make) == SGL_JIT_OK;
        weights_device = made;
        fine = fine && run(&use) == SGL_JIT_OK;
        weights_device = kept;
        CU_ASSERT_FATAL(fine);
        CU_ASSERT_FATAL(cu.cuCtxSynchronize() == 0);
        CU_ASSERT_FATAL(cu.cuMemcpyDtoH_v2(output_host, output_device, output_size(&use) + 2 * GUARD) == 0);
        if (turn == 0)
          memcpy(without, output_host + GUARD, output_size(&use));
        wrong += memcmp(without, output_host + GUARD, output_size(&use)) != 0 || !guards_intact(&use);
      }
      memcpy(output_host + GUARD, without, output_size(&use));
      for (size_t v = 0; v < (size_t)counts[i] * OUT; v++)
        wrong += isnan(value(&use, v)) != 0;
      CU_ASSERT_EQUAL(wrong, 0);
      cu.cuStreamDestroy_v2(make.stream);
    }
  set_modes(false, false);
  free(without);
  cu.cuMemFree_v2(made);
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
  struct errors e = {0};
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
    {"grid", grid},
    {"random_shapes", random_shapes},
    {"pdl_chain", pdl_chain},
    {"pdl_graph", pdl_graph},
    {"pdl_weights", pdl_weights},
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
  choose_tokens();
  if (getenv("SGL_TEST_SHARD")) { /* with its parent's cache */
    open_driver();
    return unit_main("gpu/kernels", tests, sizeof tests / sizeof tests[0], argc, argv);
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
