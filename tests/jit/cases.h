/* Calls on the fake driver and compiler: a case has a child of its own, and a cache of its own. */
#ifndef SGL_TESTS_JIT_CASES_H
#define SGL_TESTS_JIT_CASES_H

#include "support.h"

__attribute__((unused)) static struct fakes fakes;
__attribute__((unused)) static struct path folder; /* the cache of the case */

/* A small call: its kernel is compiled once for the whole suite, and kept by the fake compiler. */
HELPER struct gemm router_call(void) {
  struct gemm g = {.f32 = true, .cuda = true, .tokens = 3, .n = 8, .k = 256};
  gemm_make(&g, true);
  return g;
}

HELPER struct gemm fused_call(int tokens, int k) {
  struct gemm g = {.fused = true, .cuda = true, .tokens = tokens, .n = 16, .k = k};
  gemm_make(&g, true);
  return g;
}

#define RETURNS(g, status_wanted, text)                                                                                \
  do {                                                                                                                 \
    CU_ASSERT_EQUAL(gemm_run(&(g)), status_wanted);                                                                    \
    UNIT_STRINGS((g).message, text);                                                                                   \
  } while (0)
#define WORKS(g)                                                                                                       \
  do {                                                                                                                 \
    RETURNS(g, SGL_JIT_OK, "");                                                                                        \
    CU_ASSERT_EQUAL(gemm_wrong(&(g), 1e-6), 0);                                                                        \
  } while (0)

HELPER int launches(void) {
  return fakes.count("cuLaunchKernel") + fakes.count("cuLaunchKernelEx");
}

static const char *driver_name;
static void (*case_body)(void);

/* In the child: the parent never loads a fake, which would be there for all later cases. */
HELPER void body_with_fakes(void) {
  fakes = use_fakes(driver_name);
  case_body();
}

HELPER void in_child_with_fakes(const char *driver, void (*body)(void)) {
  driver_name = driver;
  case_body = body;
  in_child(body_with_fakes);
}

HELPER void start_cache(void) {
  folder = make_temporary();
  setenv("SGL_KERNEL_JIT_CACHE_DIR", folder.text, 1);
}

HELPER void run_case(const char *driver, void (*body)(void)) {
  start_cache();
  in_child_with_fakes(driver, body);
  remove_tree(folder);
}

#define CASE(name)                                                                                                     \
  static void name##_body(void);                                                                                       \
  static void name(void) {                                                                                             \
    run_case("fake_cuda.so", name##_body);                                                                             \
  }                                                                                                                    \
  static void name##_body(void)

#endif
