/* The kernels' own text, run on the CPU by the fake driver (emulated_device.cuh): every entry point, shapes whose work
 * divides evenly among the warps and shapes whose does not, tensors with unmapped pages before and behind. */
#include "support.h"

static struct fakes fakes;
static struct path cache;

struct shape {
  bool fused, f32;
  int n, k;
  const char *entries[8]; /* for the numbers of tokens below */
};

static const int token_counts[] = {1, 2, 3, 8, 11, 16, 17, 64};
enum { TOKEN_COUNTS = 8 };

static void check(const struct shape *s, int last_count) {
  struct gemm all = {
      .fused = s->fused, .f32 = s->f32, .cuda = true, .tokens = token_counts[last_count], .n = s->n, .k = s->k};
  gemm_make(&all, true);
  CU_ASSERT_EQUAL(gemm_run(&all), SGL_JIT_OK);
  UNIT_STRINGS(all.message, "");
  UNIT_STRINGS(all.message, "");
  for (int i = 0; i <= last_count; i++) {
    struct gemm g = {.fused = s->fused, .f32 = s->f32, .cuda = true, .tokens = token_counts[i], .n = s->n, .k = s->k};
    gemm_make(&g, i % 2);
    CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
    UNIT_STRINGS(g.message, "");
    UNIT_STRINGS(fakes.cuda->entry, s->entries[i]);
    int wrong = gemm_wrong(&g, 1e-6);
    if (wrong)
      fprintf(stderr, "  %s %dx%d, %d tokens: %d wrong\n", s->fused ? "fused_a" : "router", s->n, s->k, g.tokens,
              wrong);
    CU_ASSERT_EQUAL(wrong, 0);
    /* The first rows of `all` are the same tokens: the number of tokens must not show. */
    CU_ASSERT_EQUAL(memcmp(g.output.data, all.output.data, gemm_output_size(&g)), 0);
    gemm_free(&g);
  }
  gemm_free(&all);
}

#define ROUTER_ENTRIES                                                                                                 \
  { "router_1", "router_2", "router_4", "router_8", "router_16", "router_16", "router_16", "router_16" }
#define FUSED_ENTRIES                                                                                                  \
  { "fused_a_8", "fused_a_8", "fused_a_8", "fused_a_8", "fused_a_16", "fused_a_16", "fused_a_32", "fused_a_64" }

/* K 256, 1280, 2304: 1, 5 and 5 warps; the last with idle threads in the second turn. 1, 2, 3 and 4 experts a block. */
static void router_body(void) {
  static const struct shape few[] = {{false, true, 8, 256, ROUTER_ENTRIES},
                                     {false, false, 16, 1280, ROUTER_ENTRIES},
                                     {false, true, 8, 2304, ROUTER_ENTRIES}};
  static const struct shape many[] = {{false, true, 136, 256, ROUTER_ENTRIES},
                                      {false, false, 288, 512, ROUTER_ENTRIES},
                                      {false, true, 272, 256, ROUTER_ENTRIES}};
  for (int i = 0; i < 3; i++)
    check(&few[i], 7);
  for (int i = 0; i < 3; i++)
    check(&many[i], 6);
}

/* 4, 10 and 13 warps; the last with idle warps in the third turn, so that batches of loads end inside a turn. */
static void fused_a_body(void) {
  static const struct shape shapes[] = {{true, false, 16, 256, FUSED_ENTRIES},
                                        {true, false, 32, 1280, FUSED_ENTRIES},
                                        {true, false, 16, 2304, FUSED_ENTRIES}};
  for (int i = 0; i < 3; i++)
    check(&shapes[i], 7);
}

/* One shape of the model itself, with few rows of the weight where the shape allows it. */
static void full_width_body(void) {
  static const struct shape shapes[] = {{false, true, 8, 7168, ROUTER_ENTRIES}, {true, false, 16, 7168, FUSED_ENTRIES}};
  check(&shapes[0], 4);
  check(&shapes[1], 4);
}

static void not_finite_body(void) {
  const uint16_t bad[] = {0x7f80, 0xff80, 0x7fc0};
  for (int fused = 0; fused < 2; fused++) {
    for (int i = 0; i < 3; i++) {
      struct gemm g = {.fused = fused, .f32 = !fused, .cuda = true, .tokens = 3, .n = 16, .k = 256};
      gemm_make(&g, true);
      ((uint16_t *)g.a.data)[256 + 77] = bad[i];
      CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
      UNIT_STRINGS(g.message, "");
      for (int m = 0; m < 3; m++)
        for (int n = 0; n < 16; n++) {
          double have = gemm_value(&g, m, n), want = (double)gemm_expected(&g, m, n);
          CU_ASSERT(m == 1 ? isnan(want) ? isnan(have) : have == want : isfinite(have));
        }
      gemm_free(&g);
    }
  }
}

/* A device with little shared memory: the greatest path that fits serves, with more blocks. */
static void little_shared_memory_body(void) {
  fakes.cuda->shared_optin = 48 * 1024;
  struct gemm g = {.fused = true, .cuda = true, .tokens = 64, .n = 16, .k = 7168};
  gemm_make(&g, true);
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
  UNIT_STRINGS(g.message, "");
  UNIT_STRINGS(fakes.cuda->entry, "fused_a_32");
  CU_ASSERT_EQUAL(fakes.cuda->grid[1], 2);
  CU_ASSERT_EQUAL(gemm_wrong(&g, 1e-6), 0);
  gemm_free(&g);
}

static void start(void (*body)(void)) {
  cache = make_temporary();
  setenv("SGL_KERNEL_JIT_CACHE_DIR", cache.text, 1);
  fakes = use_fakes("fake_cuda.so");
  in_child(body);
  remove_tree(cache);
}

static void router(void) {
  start(router_body);
}
static void fused_a(void) {
  start(fused_a_body);
}
static void full_width(void) {
  start(full_width_body);
}
static void not_finite(void) {
  start(not_finite_body);
}
static void little_shared_memory(void) {
  start(little_shared_memory_body);
}

static const struct unit_test tests[] = {{"router", router},
                                         {"fused_a", fused_a},
                                         {"full_width", full_width},
                                         {"not_finite", not_finite},
                                         {"little_shared_memory", little_shared_memory}};
UNIT_MAIN("jit/emulate", tests)
