/* The reference backend against long double sums, its rounding, how a backend is chosen, and the small public
 * functions. */
#include "support.h"
#include <errno.h>

static void random_shapes(void) {
  static const struct {
    bool fused, f32;
    int tokens, n, k;
  } shapes[] = {{false, true, 1, 8, 256},    {false, false, 5, 40, 512},  {false, true, 64, 24, 768},
                {false, true, 3, 256, 7168}, {true, false, 1, 16, 256},   {true, false, 16, 48, 1024},
                {true, false, 64, 16, 512},  {true, false, 2, 2112, 7168}};
  sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0);
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    struct gemm g = {
        .fused = shapes[i].fused, .f32 = shapes[i].f32, .tokens = shapes[i].tokens, .n = shapes[i].n, .k = shapes[i].k};
    gemm_make(&g, i % 2);
    CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
    UNIT_STRINGS(g.message, "");
    CU_ASSERT_EQUAL(gemm_wrong(&g, 1e-12), 0);
    gemm_free(&g);
  }
}

/* The result of one row of K = 256 that is zero but for these products. */
static double one_sum(bool f32, const float *a, const float *w, int count) {
  struct gemm g = {.fused = !f32, .f32 = f32, .tokens = 1, .n = f32 ? 8 : 16, .k = 256};
  gemm_make(&g, true);
  memset(g.a.data, 0, 512);
  memset(g.w.data, 0, (size_t)g.n * 512);
  for (int i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, &a[i], sizeof bits);
    ((uint16_t *)g.a.data)[i] = (uint16_t)(bits >> 16);
    memcpy(&bits, &w[i], sizeof bits);
    ((uint16_t *)g.w.data)[i] = (uint16_t)(bits >> 16);
  }
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
  double result = gemm_value(&g, 0, 0);
  gemm_free(&g);
  return result;
}

static void rounding(void) {
  sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0);
  const float one[] = {1, 1, 1}, tiny = 0x1p-60f;
  /* bf16 has 8 bits: between 1 and 1 + 2^-7 lies the tie 1 + 2^-8. */
  CU_ASSERT_EQUAL(one_sum(false, one, (float[]){1, 0x1p-8f}, 2), 1.0);                  /* to even: down */
  CU_ASSERT_EQUAL(one_sum(false, one, (float[]){1 + 0x1p-7f, 0x1p-8f}, 2), 1 + 0x1p-6); /* to even: up */
  /* A hair from the tie, too little for a float to tell: rounding twice would lose it. */
  CU_ASSERT_EQUAL(one_sum(false, one, (float[]){1, 0x1p-8f, 0x1p-40f}, 3), 1 + 0x1p-7);
  CU_ASSERT_EQUAL(one_sum(false, one, (float[]){1 + 0x1p-7f, 0x1p-8f, -0x1p-40f}, 3), 1 + 0x1p-7);
  CU_ASSERT_EQUAL(one_sum(false, one, (float[]){-1, -0x1p-8f, -0x1p-40f}, 3), -1 - 0x1p-7);
  /* Sums that cancel keep what double holds, and no more. */
  CU_ASSERT_EQUAL(one_sum(true, (float[]){1024, 1, -1024}, (float[]){1024, tiny, 1024}, 3), 0.0);
  CU_ASSERT_EQUAL(one_sum(true, (float[]){1024, 1, -1024}, (float[]){1024, 0x1p-20f, 1024}, 3), 0x1p-20);
  /* Overflow, infinities, NaN. */
  CU_ASSERT(isinf(one_sum(false, (float[]){0x1p127f, 0x1p127f}, (float[]){1, 1}, 2)));
  CU_ASSERT(isinf(one_sum(true, (float[]){0x1p127f}, (float[]){0x1p127f}, 1)));
  CU_ASSERT_EQUAL(one_sum(false, (float[]){-INFINITY}, one, 1), -INFINITY);
  CU_ASSERT_EQUAL(one_sum(true, (float[]){INFINITY}, one, 1), INFINITY);
  CU_ASSERT(isnan(one_sum(false, (float[]){INFINITY, -INFINITY}, one, 2)));
  CU_ASSERT(isnan(one_sum(false, (float[]){NAN}, one, 1)));
  CU_ASSERT(isnan(one_sum(true, (float[]){-NAN}, one, 1)));
}

/* --- the choice --- */

static struct gemm small(bool cuda) {
  struct gemm g = {.f32 = true, .cuda = cuda, .tokens = 2, .n = 8, .k = 256};
  gemm_make(&g, true);
  return g;
}

static void unset_body(void) {
  unsetenv("SGL_KERNEL_JIT_BACKEND");
  CU_ASSERT_EQUAL(sgl_jit_get_backend(), SGL_JIT_BACKEND_AUTO);
  struct gemm g = small(false);
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_UNSUPPORTED);
  UNIT_STRINGS(g.message, "dsv3_router_gemm: the tensors must be on a CUDA device, got CPU tensors (for tests, "
                          "SGL_KERNEL_JIT_BACKEND=reference computes them)");
  g.tokens = 0; /* is no way around it */
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_UNSUPPORTED);
}

static void reference_body(void) {
  setenv("SGL_KERNEL_JIT_BACKEND", "reference", 1);
  struct gemm g = small(false);
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
  CU_ASSERT_EQUAL(sgl_jit_get_backend(), SGL_JIT_BACKEND_REFERENCE);
  setenv("SGL_KERNEL_JIT_BACKEND", "auto", 1); /* read once */
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
  struct gemm cuda = small(true);
  cuda.device = 1;
  CU_ASSERT_EQUAL(gemm_run(&cuda), SGL_JIT_ERROR_UNSUPPORTED);
  UNIT_STRINGS(cuda.message,
               "dsv3_router_gemm: the reference backend computes CPU tensors only, got tensors on cuda:1");
  CU_ASSERT_EQUAL(sgl_jit_set_backend(SGL_JIT_BACKEND_AUTO, NULL, 0), SGL_JIT_OK);
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_UNSUPPORTED);
}

static void misspelt_body(void) {
  setenv("SGL_KERNEL_JIT_BACKEND", "refrence", 1);
  struct gemm g = small(false);
  CU_ASSERT_EQUAL(sgl_jit_get_backend(), SGL_JIT_BACKEND_AUTO);
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_STRINGS(g.message,
               "dsv3_router_gemm: the environment variable SGL_KERNEL_JIT_BACKEND must be auto or reference");
  CU_ASSERT_EQUAL(sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0), SGL_JIT_OK);
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
}

static void set_first_body(void) {
  setenv("SGL_KERNEL_JIT_BACKEND", "auto", 1);
  CU_ASSERT_EQUAL(sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0), SGL_JIT_OK);
  CU_ASSERT_EQUAL(sgl_jit_get_backend(), SGL_JIT_BACKEND_REFERENCE);
  char message[128] = "";
  CU_ASSERT_EQUAL(sgl_jit_set_backend((sgl_jit_backend)7, message, sizeof message), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_STRINGS(message, "sgl_jit_set_backend: there is no backend 7");
  CU_ASSERT_EQUAL(sgl_jit_get_backend(), SGL_JIT_BACKEND_REFERENCE);
}

static void choice(void) {
  in_child(unset_body);
  in_child(reference_body);
  in_child(misspelt_body);
  in_child(set_first_body);
}

static void keeps_errno(void) {
  sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0);
  struct gemm g = small(false);
  errno = 1234;
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
  CU_ASSERT_EQUAL(errno, 1234);
  gemm_free(&g);
}

static void names(void) {
  /* Part of the ABI: never to be changed. */
  static const char *const all[] = {"SGL_JIT_OK",
                                    "SGL_JIT_ERROR_INVALID_ARGUMENT",
                                    "SGL_JIT_ERROR_UNSUPPORTED",
                                    "SGL_JIT_ERROR_NO_DRIVER",
                                    "SGL_JIT_ERROR_NO_COMPILER",
                                    "SGL_JIT_ERROR_COMPILE",
                                    "SGL_JIT_ERROR_LOAD",
                                    "SGL_JIT_ERROR_LAUNCH",
                                    "SGL_JIT_ERROR_OUT_OF_MEMORY",
                                    "SGL_JIT_ERROR_CAPTURE",
                                    "SGL_JIT_ERROR_INTERNAL",
                                    "SGL_JIT_ERROR_CACHE",
                                    "SGL_JIT_ERROR_REFUSED",
                                    "SGL_JIT_ERROR_NO_CUBLASLT",
                                    "SGL_JIT_ERROR_UNKNOWN"};
  for (int i = 0; i < 15; i++)
    UNIT_STRINGS(sgl_jit_status_name((sgl_jit_status)i), all[i]);
  UNIT_STRINGS(sgl_jit_version(), SGL_VERSION);
}

/* `choice` comes first: its children need a library whose backend nobody has set. */
static const struct unit_test tests[] = {{"choice", choice},
                                         {"random_shapes", random_shapes},
                                         {"rounding", rounding},
                                         {"keeps_errno", keeps_errno},
                                         {"names", names}};
UNIT_MAIN("jit/reference", tests)
