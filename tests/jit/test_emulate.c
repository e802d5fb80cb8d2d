/* The kernels' own text, run on the CPU by the fake driver (emulated_device.cuh): every entry point, shapes whose work
 * divides evenly among the warps and shapes whose does not, tensors with unmapped pages before and behind. */
#include "support.h"

static struct fakes fakes;
static struct path cache;

static void start(void (*body)(void)) {
  cache = make_temporary();
  setenv("SGL_KERNEL_JIT_CACHE_DIR", cache.text, 1);
  fakes = use_fakes("fake_cuda.so");
  in_child(body);
  remove_tree(cache);
}

struct shape {
  bool fused, f32;
  int n, k;
  const char *entries[8]; /* for the numbers of tokens below */
};

static const int token_counts[] = {1, 2, 3, 8, 11, 16, 17, 64};
enum { TOKEN_COUNTS = 8 };

/* In the order of token_counts; invariant: all token counts take the paths of the tensor cores. */
static void check_mode(const struct shape *s, int last_count, bool invariant) {
  CU_ASSERT_EQUAL(sgl_jit_set_batch_invariant(invariant, NULL, 0), SGL_JIT_OK);
  struct gemm all = {
      .fused = s->fused, .f32 = s->f32, .cuda = true, .tokens = token_counts[last_count], .n = s->n, .k = s->k};
  gemm_make(&all, true);
  CU_ASSERT_EQUAL(gemm_run(&all), SGL_JIT_OK);
  UNIT_STRINGS(all.message, "");
  for (int i = 0; i <= last_count; i++) {
    struct gemm g = {.fused = s->fused, .f32 = s->f32, .cuda = true, .tokens = token_counts[i], .n = s->n, .k = s->k};
    gemm_make(&g, i % 2);
    CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
    UNIT_STRINGS(g.message, "");
    bool tensor = token_counts[i] > 2 || s->fused || invariant;
    UNIT_STRINGS(fakes.cuda->entry, token_counts[i] <= 2 && tensor && !s->fused ? "router_16" : s->entries[i]);
    int wrong = gemm_wrong(&g, 1e-6);
    if (wrong)
      fprintf(stderr, "  %s %dx%d, %d tokens: %d wrong\n", s->fused ? "fused_a" : "router", s->n, s->k, g.tokens,
              wrong);
    CU_ASSERT_EQUAL(wrong, 0);
    /* The first rows of `all` are the same tokens: their number must not show. */
    if (tensor)
      CU_ASSERT_EQUAL(memcmp(g.output.data, all.output.data, gemm_output_size(&g)), 0);
    gemm_free(&g);
  }
  gemm_free(&all);
}

static void check(const struct shape *s, int last_count) {
  check_mode(s, last_count, false);
  if (!s->fused)
    check_mode(s, last_count, true);
}

#define ROUTER_ENTRIES                                                                                                 \
  { "router_1", "router_2", "router_16", "router_16", "router_16", "router_16", "router_16", "router_16" }
#define FUSED_ENTRIES                                                                                                  \
  { "fused_a_16", "fused_a_16", "fused_a_16", "fused_a_16", "fused_a_16", "fused_a_16", "fused_a_32", "fused_a_32" }

/* K 256, 512, 1280, 2304: clusters of 4, 8, 4 and 4 blocks; with 5 and 9 units a block, so that some warps have a unit
 * less. 8, 136 and 272 columns: tiles that are not full. */
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

/* 1, 5 and 9 units for each of 4 warps: up to 16 tokens only the last shape has more than the ring, with more tokens
 * the second too. 48 columns: a tile of 32 that is not full. */
static void fused_a_body(void) {
  static const struct shape shapes[] = {{true, false, 16, 256, FUSED_ENTRIES},
                                        {true, false, 48, 1280, FUSED_ENTRIES},
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

/* A device with little shared memory: the greatest path that fits serves, with more blocks. One with too little for any
 * is told so. */
static void little_shared_memory_body(void) {
  fakes.cuda->shared_optin = 44 * 1024;
  struct gemm g = {.fused = true, .cuda = true, .tokens = 64, .n = 16, .k = 7168};
  gemm_make(&g, true);
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
  UNIT_STRINGS(g.message, "");
  UNIT_STRINGS(fakes.cuda->entry, "fused_a_16");
  CU_ASSERT_EQUAL(fakes.cuda->grid[1], 4);
  CU_ASSERT_EQUAL(gemm_wrong(&g, 1e-6), 0);
  gemm_free(&g);
}

static void too_little_shared_memory_body(void) {
  fakes.cuda->shared_optin = 30 * 1024;
  struct gemm g = {.fused = true, .cuda = true, .tokens = 1, .n = 16, .k = 7168};
  gemm_make(&g, true);
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_UNSUPPORTED);
  CU_ASSERT(strstr(g.message, "30720 bytes of shared memory") != NULL);
  gemm_free(&g);
}

/* Devices before 9.0 have no clusters: a block has the whole of K. */
static void no_clusters_body(void) {
  static const struct shape shape = {false, true, 40, 1280, ROUTER_ENTRIES};
  fakes.cuda->major = 8;
  fakes.cuda->minor = 6;
  fakes.cuda->shared_optin = 101376;
  check(&shape, 7);
}

/* How many units lie in shared memory at once must not show in the result: a device with much of it has them all there,
 * or as many as are wanted, others have a ring of three slots or two, and more blocks for many tokens. */
static struct {
  struct gemm gemm;
  int shared_bytes, blocks_y;
  unsigned char *output; /* shared with the children */
} rings;

static void rings_body(void) {
  struct gemm g = rings.gemm;
  fakes.cuda->shared_optin = rings.shared_bytes;
  gemm_make(&g, true);
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
  UNIT_STRINGS(g.message, "");
  CU_ASSERT_EQUAL(fakes.cuda->grid[1], (unsigned)rings.blocks_y);
  CU_ASSERT_EQUAL(gemm_wrong(&g, 1e-6), 0);
  memcpy(rings.output, g.output.data, gemm_output_size(&g));
  gemm_free(&g);
}

static void rings_of(struct gemm gemm, const int shared_bytes[3], const int blocks_y[3]) {
  unsigned char first[17 * 16 * 4];
  rings.gemm = gemm;
  for (int i = 0; i < 3; i++) {
    rings.shared_bytes = shared_bytes[i];
    rings.blocks_y = blocks_y[i];
    start(rings_body);
    if (i == 0)
      memcpy(first, rings.output, gemm_output_size(&gemm));
    CU_ASSERT_EQUAL(memcmp(first, rings.output, gemm_output_size(&gemm)), 0);
  }
}

/* The router's 8 blocks of a tile with 4 units for each of 8 warps; the fused GEMM with 9 units for each of 4. */
static void rings_of_all_sizes(void) {
  static const int router_bytes[] = {232448, 101376, 70000}, router_y[] = {1, 2, 2};
  static const int fused_bytes[] = {232448, 101376, 40000}, fused_y[] = {1, 1, 2};
  rings.output = mmap(NULL, 17 * 16 * 4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  rings_of((struct gemm){.f32 = true, .cuda = true, .tokens = 17, .n = 8, .k = 16384}, router_bytes, router_y);
  rings_of((struct gemm){.fused = true, .cuda = true, .tokens = 17, .n = 16, .k = 2304}, fused_bytes, fused_y);
  munmap(rings.output, 17 * 16 * 4);
}

/* Programmatic dependent launch: the attribute, and the argument that lets weights be fetched first. */
static void overlap_body(void) {
  static const struct {
    sgl_jit_pdl mode;
    const char *option;
  } cases[] = {{SGL_JIT_PDL_OFF, "-DPDL=0 "}, {SGL_JIT_PDL_ON, "-DPDL=1 "}, {SGL_JIT_PDL_NO_PREFETCH, "-DPDL=2 "}};
  for (int fused = 0; fused < 2; fused++)
    for (int tokens = 1; tokens < 20; tokens += 9)
      for (int i = 0; i < 3; i++) {
        struct gemm g = {.fused = fused, .f32 = !fused, .cuda = true, .tokens = tokens, .n = 16, .k = 512};
        gemm_make(&g, true);
        CU_ASSERT_EQUAL(sgl_jit_set_pdl(cases[i].mode, NULL, 0), SGL_JIT_OK);
        CU_ASSERT_EQUAL(sgl_jit_get_pdl(), cases[i].mode);
        CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
        CU_ASSERT_EQUAL(fakes.cuda->overlap, i > 0);
        if (tokens == 1)
          CU_ASSERT(strstr(fakes.nvrtc->options, cases[i].option) != NULL);
        CU_ASSERT_EQUAL(gemm_wrong(&g, 1e-6), 0);
        gemm_free(&g);
      }
  CU_ASSERT_EQUAL(sgl_jit_set_pdl((sgl_jit_pdl)3, NULL, 0), SGL_JIT_ERROR_INVALID_ARGUMENT);
  CU_ASSERT_EQUAL(sgl_jit_set_batch_invariant(2, NULL, 0), SGL_JIT_ERROR_INVALID_ARGUMENT);
}

/* Before 9.0 there is no such launch: the switch changes nothing. */
static void no_overlap_body(void) {
  fakes.cuda->major = 8;
  fakes.cuda->minor = 9;
  fakes.cuda->shared_optin = 101376;
  CU_ASSERT_EQUAL(sgl_jit_set_pdl(SGL_JIT_PDL_ON, NULL, 0), SGL_JIT_OK);
  for (int fused = 0; fused < 2; fused++)
    for (int tokens = 1; tokens < 20; tokens += 9) {
      struct gemm g = {.fused = fused, .f32 = !fused, .cuda = true, .tokens = tokens, .n = 16, .k = 256};
      gemm_make(&g, true);
      CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
      CU_ASSERT_EQUAL(fakes.cuda->overlap, 0);
      CU_ASSERT_EQUAL(gemm_wrong(&g, 1e-6), 0);
      gemm_free(&g);
    }
}

static void modes_of(const char *pdl, const char *prefetch, const char *invariant, sgl_jit_pdl want_pdl, int want) {
  const char *const names[] = {"TRTLLM_ENABLE_PDL", "SGL_KERNEL_JIT_PDL_PREFETCH", "SGL_KERNEL_JIT_BATCH_INVARIANT"};
  const char *const values[] = {pdl, prefetch, invariant};
  for (int i = 0; i < 3; i++)
    if (values[i])
      setenv(names[i], values[i], 1);
    else
      unsetenv(names[i]);
  pid_t pid = fork();
  if (pid == 0)
    _exit(sgl_jit_get_pdl() == want_pdl && sgl_jit_get_batch_invariant() == want ? 0 : 1);
  int status = -1;
  waitpid(pid, &status, 0);
  CU_ASSERT_EQUAL(status, 0);
}

static void environment(void) {
  modes_of(NULL, NULL, NULL, SGL_JIT_PDL_OFF, 0);
  modes_of("1", NULL, "1", SGL_JIT_PDL_ON, 1);
  modes_of("1", "0", "0", SGL_JIT_PDL_NO_PREFETCH, 0);
  modes_of("1", "1", "", SGL_JIT_PDL_ON, 0);
  modes_of("true", NULL, NULL, SGL_JIT_PDL_OFF, 0);
  modes_of("0", "0", NULL, SGL_JIT_PDL_OFF, 0);
}

static void bad_environment_body(void) {
  setenv("SGL_KERNEL_JIT_BATCH_INVARIANT", "yes", 1);
  setenv("SGL_KERNEL_JIT_PDL_PREFETCH", "no", 1);
  struct gemm g = {.fused = true, .cuda = true, .tokens = 1, .n = 16, .k = 256};
  gemm_make(&g, true);
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
  CU_ASSERT(strstr(g.message, "SGL_KERNEL_JIT_BATCH_INVARIANT") != NULL);
  CU_ASSERT_EQUAL(sgl_jit_set_batch_invariant(0, NULL, 0), SGL_JIT_OK); /* the other one is still wrong */
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
  CU_ASSERT_EQUAL(sgl_jit_set_pdl(SGL_JIT_PDL_OFF, NULL, 0), SGL_JIT_OK);
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
  gemm_free(&g);
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
  start(too_little_shared_memory_body);
}
static void no_clusters(void) {
  start(no_clusters_body);
}
static void overlap(void) {
  start(overlap_body);
}
static void no_overlap(void) {
  start(no_overlap_body);
}
static void bad_environment(void) {
  start(bad_environment_body);
}

static const struct unit_test tests[] = {{"router", router},
                                         {"fused_a", fused_a},
                                         {"full_width", full_width},
                                         {"not_finite", not_finite},
                                         {"little_shared_memory", little_shared_memory},
                                         {"no_clusters", no_clusters},
                                         {"rings_of_all_sizes", rings_of_all_sizes},
                                         {"overlap", overlap},
                                         {"no_overlap", no_overlap},
                                         {"environment", environment},
                                         {"bad_environment", bad_environment}};
UNIT_MAIN("jit/emulate", tests)
