/* What a call with a loaded kernel does: the driver's two functions, or cuBLASLt's, and nothing else outside of the
 * library - no lock, no allocation, no look at the environment or a file. */
#include "support.h"
#include "tests/steps.h"

/* Of the library and this file's call. An instruction is not a nanosecond, but its number is the same on a busy
 * machine: a call that grows past this has got work that was not there. */
enum { MOST_INSTRUCTIONS = 1000, MOST_INSTRUCTIONS_BMM = 1500 };

static const char *const allowed[] = {"libc.so.6:__errno_location", "fake_cuda.so:", "fake_cublaslt.so:", NULL};
static struct fakes fakes;
static bool fused;

static void body(void) {
  enum { M = 3, N = 64, K = 256 };
  static _Alignas(16) char output[M * N * 4], a[M * K * 2], w[N * K * 2];
  const int64_t sizes[3][2] = {{M, N}, {M, K}, {fused ? K : N, fused ? N : K}};
  const int64_t strides[3][2] = {{N, 1}, {K, 1}, {fused ? 1 : K, fused ? K : 1}};
  void *const data[3] = {output, a, w};
  sgl_jit_tensor t[3];
  for (int i = 0; i < 3; i++)
    t[i] = (sgl_jit_tensor){.data = data[i],
                            .dtype = i == 0 && !fused ? SGL_JIT_DTYPE_FLOAT32 : SGL_JIT_DTYPE_BFLOAT16,
                            .device_type = SGL_JIT_DEVICE_CUDA,
                            .ndim = 2,
                            .sizes = sizes[i],
                            .strides = strides[i]};
  char message[512];
  sgl_jit_status (*call)(const sgl_jit_tensor *, const sgl_jit_tensor *, const sgl_jit_tensor *, void *, char *,
                         size_t) = fused ? sgl_jit_dsv3_fused_a_gemm : sgl_jit_dsv3_router_gemm;
  fakes.context(0, 1);
  for (int i = 0; i < 2; i++) /* the second one has also resolved what the loader resolves late */
    if (call(&t[0], &t[1], &t[2], NULL, message, sizeof message) != SGL_JIT_OK)
      _exit(1);
  steps_begin();
  call(&t[0], &t[1], &t[2], NULL, message, sizeof message);
  steps_end();
}

static void bmm_body(void) {
  enum { BATCH = 2, M = 3, N = 8, K = 32 };
  static _Alignas(256) char output[BATCH * M * N * 2], a[BATCH * M * K], b[BATCH * K * N], workspace[256];
  static _Alignas(16) float scales[8];
  const int64_t sizes[3][3] = {{BATCH, M, N}, {BATCH, M, K}, {BATCH, K, N}};
  const int64_t strides[3][3] = {{M * N, N, 1}, {M * K, K, 1}, {K * N, 1, K}};
  void *const data[5] = {output, a, b, &scales[0], &scales[4]};
  sgl_jit_tensor t[5];
  for (int i = 0; i < 5; i++)
    t[i] = (sgl_jit_tensor){.data = data[i],
                            .dtype = i == 0  ? SGL_JIT_DTYPE_BFLOAT16
                                     : i < 3 ? SGL_JIT_DTYPE_FLOAT8_E4M3FN
                                             : SGL_JIT_DTYPE_FLOAT32,
                            .device_type = SGL_JIT_DEVICE_CUDA,
                            .ndim = i < 3 ? 3 : 0,
                            .sizes = i < 3 ? sizes[i] : NULL,
                            .strides = i < 3 ? strides[i] : NULL};
  char message[512];
  fakes.context(0, 1);
  for (int i = 0; i < 2; i++)
    if (sgl_jit_bmm_fp8(&t[0], &t[1], &t[2], &t[3], &t[4], workspace, sizeof workspace, NULL, message,
                        sizeof message) != SGL_JIT_OK)
      _exit(1);
  steps_begin();
  sgl_jit_bmm_fp8(&t[0], &t[1], &t[2], &t[3], &t[4], workspace, sizeof workspace, NULL, message, sizeof message);
  steps_end();
}

static void warm_call(void (*call)(void), int most_instructions) {
  setenv("SGL_KERNEL_JIT_CACHE_DIR", "/dev/null", 1);
  setenv("SGL_KERNEL_JIT_CUBLASLT", path_in(own_folder(), "fake_cublaslt.so").text, 1);
  if (!fakes.cuda)
    fakes = use_fakes("fake_cuda.so");
  fakes.cuda->idle = fakes.nvrtc->idle = 1;
  void *blas = dlopen(path_in(own_folder(), "fake_cublaslt.so").text, RTLD_NOW);
  struct fake_cublaslt *fake_blas = blas ? dlsym(blas, "fake_cublaslt") : NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(fake_blas);
  fake_blas->idle = 1;
  struct steps s = steps_of(call);
  if (s.refused) {
    UNIT_SKIP("no ptrace here");
    return;
  }
  CU_ASSERT_EQUAL(s.failed, 0);
  UNIT_STRINGS(steps_forbidden(&s, allowed), "");
  CU_ASSERT(s.functions >= 2); /* it did come to the driver ... */
  CU_ASSERT(s.own > 100);      /* ... through the library */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (s.own > most_instructions)
    fprintf(stderr, "  a warm call takes %ld instructions, %d are allowed\n", s.own, most_instructions);
  CU_ASSERT(s.own <= most_instructions);
#else
  (void)most_instructions;
#endif
}

static void router(void) {
  fused = false;
  warm_call(body, MOST_INSTRUCTIONS);
}

static void fused_a(void) {
  fused = true;
  warm_call(body, MOST_INSTRUCTIONS);
}

static void bmm_fp8(void) {
  warm_call(bmm_body, MOST_INSTRUCTIONS_BMM);
}

static void forbidden_body(void) {
  static void *volatile p;
  p = malloc(10);
  free(p);
  steps_begin();
  p = malloc(10);
  free(p);
  steps_end();
}

/* The measurement itself: it does see what it is there for. */
static void sees_an_allocation(void) {
  struct steps s = steps_of(forbidden_body);
  if (s.refused) {
    UNIT_SKIP("no ptrace here");
    return;
  }
  CU_ASSERT_EQUAL(s.failed, 0);
  UNIT_CONTAINS(steps_forbidden(&s, allowed), "malloc");
}

static const struct unit_test tests[] = {
    {"router", router},
    {"fused_a", fused_a},
    {"bmm_fp8", bmm_fp8},
    {"sees_an_allocation", sees_an_allocation},
};
UNIT_MAIN("jit/hot_path", tests)
