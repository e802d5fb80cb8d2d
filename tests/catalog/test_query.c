/* Questions to a catalog in memory, and the order of release numbers against an independent rule. */
#include "tests/unit.h"

#include "catalog/catalog.h"

#include <stdlib.h>

/* --- release numbers ------------------------------------------------------------------------------------------------
 */

/* Each is later than the one before; words that are no release number come first, in the order of strcmp. */
static const char *const ascending[] = {
    "next",
    "not a version",
    "0.0.2",
    "0.0.2.post8",
    "0.0.2.post10",
    "0.0.3.dev1",
    "0.0.3a1.dev2",
    "0.0.3a1",
    "0.0.3a1.post1",
    "0.0.3a2",
    "0.0.3b1",
    "0.0.3rc1",
    "0.0.3rc2.dev1",
    "0.0.3rc2",
    "0.0.3rc10",
    "0.0.3",
    "0.0.3.post1.dev4",
    "0.0.3.post1",
    "0.0.3.post2",
    "0.3.21",
    "0.4.0",
    "0.4.1",
    "0.4.1.post1",
    "0.4.2",
    "0.4.6",
    "0.4.6.post1",
    "0.4.7",
    "0.4.9",
    "0.4.10",
    "0.5.10rc0",
    "0.5.10",
    "0.10",
    "1",
    "1.0.0.1",
    "2026.9",
    "99999999999999999999999999",
    "99999999999999999999999999.1",
};

static int sign(int x) {
  return (x > 0) - (x < 0);
}

static void order_of_a_table(void) {
  size_t count = sizeof ascending / sizeof ascending[0];
  for (size_t i = 0; i < count; i++)
    for (size_t j = 0; j < count; j++) {
      int have = sign(catalog_version_compare(ascending[i], ascending[j]));
      int want = i < j ? -1 : i > j;
      if (have != want)
        fprintf(stderr, "  %s against %s: %d, want %d\n", ascending[i], ascending[j], have, want);
      CU_ASSERT_EQUAL(have, want);
    }
}

static void equal_forms(void) {
  static const char *const same[][2] = {
      {"0.4.4", "0.4.4+cu130"},
      {"0.4", "0.4.0"},
      {"1", "1.0.0"},
      {"0.4.04", "0.4.4"},
      {"0.4.4", "0.4.4.0"},
      {"1rc1", "1.0rc1"},
      {"0.4.4.post1+a.b-c_d", "0.4.4.post1"},
      {"007", "7"},
  };
  for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
    CU_ASSERT_EQUAL(catalog_version_compare(same[i][0], same[i][1]), 0);
    CU_ASSERT_EQUAL(catalog_version_compare(same[i][1], same[i][0]), 0);
  }
}

static void validity(void) {
  static const char *const good[] = {
      "0",      "0.4",          "0.4.6.post1",     "1a0",         "1b2",       "1.0rc3",
      "1.dev0", "1.post1.dev2", "1rc1.post1.dev1", "0.4.4+cu130", "1+a.1-b_2", "0.0.0.0.0.1"};
  static const char *const bad[] = {"",       "v1",    "1.",    ".1",      "1..2",           "1rc",
                                    "1.post", "1.dev", "1+",    "1+a.",    "1+a..b",         "1 ",
                                    " 1",     "1.0c1", "1-1",   "1.0rc-1", "1.dev1.post1",   "1.post1rc1",
                                    "latest", "1.x",   "1!2.0", "1+ä",     "1.0.post1.post2"};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    if (!catalog_version_valid(good[i]))
      CU_FAIL(good[i]);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    bool valid = catalog_version_valid(bad[i]);
    if (valid)
      fprintf(stderr, "  valid, but should not be: '%s'\n", bad[i]);
    CU_ASSERT_FALSE(valid);
    CU_ASSERT(catalog_version_compare(bad[i], "0") < 0);
    CU_ASSERT(catalog_version_compare("0", bad[i]) > 0);
  }
}

/* A random release number as text and as the tuple that PEP 440 sorts by. */
struct sample {
  char text[80];
  int key[8];
};

static int below(unsigned *seed, int limit) {
  *seed = *seed * 1664525u + 1013904223u;
  return (int)((*seed >> 8) % (unsigned)limit);
}

static struct sample random_sample(unsigned *seed) {
  struct sample s = {.key = {0}};
  int parts = 1 + below(seed, 4), length = 0;
  for (int i = 0; i < parts; i++) {
    s.key[i] = below(seed, 3) ? below(seed, 3) : below(seed, 120);
    length += sprintf(s.text + length, i ? ".%d" : "%d", s.key[i]);
  }
  int pre = below(seed, 4), post = below(seed, 2), dev = below(seed, 3) == 0;
  s.key[4] = pre ? pre * 1000 + below(seed, 12) : 9999; /* a, b, rc; none is the release itself */
  static const char *const names[] = {"", "a", "b", "rc"};
  if (pre)
    length += sprintf(s.text + length, "%s%d", names[pre], s.key[4] % 1000);
  s.key[5] = post ? 1 + below(seed, 12) : 0;
  if (post)
    length += sprintf(s.text + length, ".post%d", s.key[5] - 1);
  s.key[6] = dev ? below(seed, 12) : 9999;
  if (dev)
    length += sprintf(s.text + length, ".dev%d", s.key[6]);
  if (dev && !pre && !post)
    s.key[4] = 0; /* a dev release of nothing but the release comes before all its alphas */
  if (below(seed, 4) == 0)
    sprintf(s.text + length, "+local.%d", below(seed, 9));
  return s;
}

static int compare_keys(const struct sample *a, const struct sample *b) {
  for (int i = 0; i < 8; i++)
    if (a->key[i] != b->key[i])
      return a->key[i] < b->key[i] ? -1 : 1;
  return 0;
}

static void order_at_random(void) {
  enum { SAMPLES = 500 };
  static struct sample samples[SAMPLES];
  unsigned seed = 20260706;
  for (int i = 0; i < SAMPLES; i++) {
    samples[i] = random_sample(&seed);
    CU_ASSERT(catalog_version_valid(samples[i].text));
  }
  unsigned wrong = 0;
  for (int i = 0; i < SAMPLES; i++)
    for (int j = 0; j < SAMPLES; j++) {
      int have = sign(catalog_version_compare(samples[i].text, samples[j].text));
      int want = compare_keys(&samples[i], &samples[j]);
      if (have != want && wrong++ < 5)
        fprintf(stderr, "  %s against %s: %d, want %d\n", samples[i].text, samples[j].text, have, want);
    }
  CU_ASSERT_EQUAL(wrong, 0);
}

/* --- symbols, removals, routes --------------------------------------------------------------------------------------
 */

static void find(void) {
  CU_ASSERT_FATAL(catalog_builtin.symbols_count > 3);
  for (unsigned i = 0; i < catalog_builtin.symbols_count; i++)
    CU_ASSERT_PTR_EQUAL(catalog_find(&catalog_builtin, catalog_builtin.symbols[i].id), &catalog_builtin.symbols[i]);
  static const char *const none[] = {"", "A", "dsv3_router", "dsv3_router_gemmx", "zzz"};
  for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
    CU_ASSERT_PTR_NULL(catalog_find(&catalog_builtin, none[i]));
  struct catalog empty = {.symbols_count = 0};
  CU_ASSERT_PTR_NULL(catalog_find(&empty, "x"));
}

static bool gone(const char *id, enum catalog_layer layer, enum catalog_platform platform, const char *kernel) {
  return catalog_is_removed(catalog_find(&catalog_builtin, id), layer, platform, kernel);
}

static void removed_layers(void) {
  const char *router = "dsv3_router_gemm", *fused = "dsv3_fused_a_gemm";
  CU_ASSERT_FALSE(gone(router, CATALOG_LAYER_PYTHON, CATALOG_CUDA, "0.4.4"));
  CU_ASSERT_FALSE(gone(router, CATALOG_LAYER_PYTHON, CATALOG_CUDA, "0.4.4.post1+cu130"));
  CU_ASSERT_TRUE(gone(router, CATALOG_LAYER_PYTHON, CATALOG_CUDA, "0.4.5"));
  CU_ASSERT_TRUE(gone(router, CATALOG_LAYER_PYTHON, CATALOG_CUDA, "0.4.10"));
  CU_ASSERT_TRUE(gone(router, CATALOG_LAYER_CXX, CATALOG_CUDA, "0.4.5"));
  CU_ASSERT_FALSE(gone(router, CATALOG_LAYER_SOURCES, CATALOG_CUDA, "0.4.5"));
  CU_ASSERT_TRUE(gone(router, CATALOG_LAYER_SOURCES, CATALOG_CUDA, "0.4.6"));
  /* MUSA has rows of its own for operator and C++, and follows CUDA for Python */
  CU_ASSERT_FALSE(gone(router, CATALOG_LAYER_OPERATOR, CATALOG_MUSA, "0.4.5"));
  CU_ASSERT_TRUE(gone(router, CATALOG_LAYER_OPERATOR, CATALOG_MUSA, "0.4.6"));
  CU_ASSERT_TRUE(gone(router, CATALOG_LAYER_PYTHON, CATALOG_MUSA, "0.4.5"));
  for (enum catalog_layer layer = CATALOG_LAYER_PYTHON; layer <= CATALOG_LAYER_SOURCES; layer++) {
    CU_ASSERT_FALSE(gone(fused, layer, CATALOG_CUDA, "0.4.5"));
    CU_ASSERT_TRUE(gone(fused, layer, CATALOG_MUSA, "0.4.6"));
  }
  /* still there on one platform */
  CU_ASSERT_TRUE(gone("min_p_sampling_from_probs", CATALOG_LAYER_PYTHON, CATALOG_CUDA, "0.4.0"));
  CU_ASSERT_FALSE(gone("min_p_sampling_from_probs", CATALOG_LAYER_PYTHON, CATALOG_MUSA, "0.4.10"));
  /* only the operator left */
  CU_ASSERT_TRUE(gone("sgl_per_token_group_quant_fp8", CATALOG_LAYER_OPERATOR, CATALOG_CUDA, "0.4.6"));
  CU_ASSERT_FALSE(gone("sgl_per_token_group_quant_fp8", CATALOG_LAYER_PYTHON, CATALOG_CUDA, "0.4.6"));
  /* a platform without CUDA's row, and a planned name */
  CU_ASSERT_TRUE(gone("rotary_position_embedding_cpu", CATALOG_LAYER_OPERATOR, CATALOG_CPU, "0.1.6"));
  CU_ASSERT_FALSE(gone("rotary_position_embedding_cpu", CATALOG_LAYER_OPERATOR, CATALOG_CUDA, "0.4.6"));
  CU_ASSERT_FALSE(gone("silu_and_mul", CATALOG_LAYER_PYTHON, CATALOG_CUDA, "99"));
}

static const char *route_module(const char *id, const char *release) {
  const struct catalog_route *route = catalog_sglang_route(catalog_find(&catalog_builtin, id), release);
  return route ? route->module : "";
}

static void sglang_routes(void) {
  UNIT_STRINGS(route_module("dsv3_router_gemm", "0.5.14"), "");
  UNIT_STRINGS(route_module("dsv3_router_gemm", "0.5.15"), "sglang.jit_kernel.dsv3_router_gemm");
  UNIT_STRINGS(route_module("dsv3_router_gemm", "0.5.16"), "sglang.jit_kernel.dsv3_router_gemm");
  UNIT_STRINGS(route_module("dsv3_router_gemm", "0.5.17"), "sglang.kernels.ops.gemm.dsv3_router_gemm");
  UNIT_STRINGS(route_module("dsv3_router_gemm", "0.5.18"), "sglang.kernels.ops.gemm.dsv3_router_gemm");
  UNIT_STRINGS(route_module("dsv3_router_gemm", "0.5.19"), "sglang.kernels.ops.gemm.dsv3_router_gemm");
  UNIT_STRINGS(route_module("dsv3_router_gemm", "0.5.20"), "sglang.kernels.ops.gemm.tiny_gemm");
  UNIT_STRINGS(route_module("dsv3_fused_a_gemm", "0.5.16"), "sglang.jit_kernel.fused_a_gemm");
  UNIT_STRINGS(route_module("dsv3_fused_a_gemm", "0.5.99"), "sglang.kernels.ops.gemm.fused_a_gemm");
  UNIT_STRINGS(route_module("qserve_w4a8_per_chn_gemm", "0.5.18"), "");
  /* nothing follows this one: until is the first release without it */
  UNIT_STRINGS(route_module("scaled_fp4_quant", "0.5.9"), "");
  UNIT_STRINGS(route_module("scaled_fp4_quant", "0.5.10rc0"), "sglang.jit_kernel.nvfp4");
  UNIT_STRINGS(route_module("scaled_fp4_quant", "0.5.15.post1"), "sglang.jit_kernel.nvfp4");
  UNIT_STRINGS(route_module("scaled_fp4_quant", "0.5.16"), "");
}

static void own_routes(void) {
  unsigned own = 0;
  for (unsigned i = 0; i < catalog_builtin.symbols_count; i++) {
    const struct catalog_symbol *symbol = &catalog_builtin.symbols[i];
    const struct catalog_route *route = catalog_jit_route(symbol);
    if (!route)
      continue;
    own++;
    UNIT_STRINGS(route->module, "sgl_kernel_jit");
    UNIT_STRINGS(route->name, symbol->id);
    /* Of the others every route is reported, none is taken: the case contract. */
    bool rewritable = strncmp(symbol->id, "dsv3_", 5) == 0;
    CU_ASSERT(route->python == rewritable && route->cxx == rewritable);
  }
  CU_ASSERT_EQUAL(own, 9);
}

/* The releases and names whose Python imports may be rewritten are what the case contract says. */
static void rewritable_imports(void) {
  static const char *const names[] = {"awq_marlin_moe_repack", "awq_marlin_repack",  "dsv3_fused_a_gemm",
                                      "dsv3_router_gemm",      "gptq_marlin_repack", "hadamard_transform"};
  static const char *const releases[] = {"0.5.15", "0.5.16", "0.5.17", "0.5.18"};
  for (size_t r = 0; r < sizeof releases / sizeof releases[0]; r++) {
    size_t found = 0;
    for (unsigned i = 0; i < catalog_builtin.symbols_count; i++) {
      const struct catalog_route *route = catalog_sglang_route(&catalog_builtin.symbols[i], releases[r]);
      if (!route || !route->python)
        continue;
      CU_ASSERT_FATAL(found < sizeof names / sizeof names[0]);
      UNIT_STRINGS(catalog_builtin.symbols[i].id, names[found++]);
    }
    CU_ASSERT_EQUAL(found, sizeof names / sizeof names[0]);
  }
}

static void sglang_kernels(void) {
  UNIT_STRINGS(catalog_sglang_kernel(&catalog_builtin, "0.5.9"), "0.3.21");
  UNIT_STRINGS(catalog_sglang_kernel(&catalog_builtin, "0.5.18+cu130"), "0.4.6.post1");
  CU_ASSERT_PTR_NULL(catalog_sglang_kernel(&catalog_builtin, "0.4.1")); /* it had a lower bound only */
  CU_ASSERT_PTR_NULL(catalog_sglang_kernel(&catalog_builtin, "99.1"));
}

static const struct unit_test tests[] = {
    {"order_of_a_table", order_of_a_table},
    {"equal_forms", equal_forms},
    {"validity", validity},
    {"order_at_random", order_at_random},
    {"find", find},
    {"removed_layers", removed_layers},
    {"sglang_routes", sglang_routes},
    {"own_routes", own_routes},
    {"sglang_kernels", sglang_kernels},
    {"rewritable_imports", rewritable_imports},
};
UNIT_MAIN("catalog.query", tests)
