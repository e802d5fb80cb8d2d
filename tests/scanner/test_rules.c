/* scanner/rules.c against the built-in catalog, and the results of scanner/scan.c. */
#include "scanner/scanner.h"
#include "tests/unit.h"

#include <stdlib.h>

static struct scan scan;

static void open_rules(const char *kernel, const char *sglang_release) {
  scan = (struct scan){.catalog = &catalog_builtin, .options = {kernel, sglang_release}};
  rules_build(&scan);
}

static const char *python(const char *module, const char *name) {
  const struct catalog_symbol *symbol = rules_python_removed(&scan, module, name);
  return symbol ? symbol->id : "";
}

static const char *operator_id(const char *name) {
  const struct catalog_symbol *symbol = rules_operator_removed(&scan, name);
  return symbol ? symbol->id : "";
}

static void removed_by_release(void) {
  open_rules("0.4.5", NULL);
  UNIT_STRINGS(python("sgl_kernel", "dsv3_router_gemm"), "dsv3_router_gemm");
  UNIT_STRINGS(python("sgl_kernel.gemm", "dsv3_router_gemm"), "dsv3_router_gemm");
  UNIT_STRINGS(python("sgl_kernel", "dsv3_fused_a_gemm"), "");
  UNIT_STRINGS(python("sgl_kernel.sampling", "dsv3_router_gemm"), "");
  UNIT_STRINGS(python("sgl_kernels", "dsv3_router_gemm"), "");
  UNIT_STRINGS(python("sgl_kernel", "dsv3_router_gemm_v2"), "");
  rules_free(&scan);
  open_rules("0.4.6+cu130", NULL);
  UNIT_STRINGS(python("sgl_kernel", "dsv3_fused_a_gemm"), "dsv3_fused_a_gemm");
  UNIT_STRINGS(python("sgl_kernel._fa4_interface", "flash_attn_varlen_func"), "flash_attn_varlen_func");
  UNIT_STRINGS(python("sgl_kernel.flash_attn", "flash_attn_varlen_func"), "");
  UNIT_STRINGS(operator_id("dsv3_router_gemm"), "dsv3_router_gemm");
  UNIT_STRINGS(operator_id("store_kv_cache"), "set_kv_buffer_kernel");
  UNIT_STRINGS(operator_id(""), "");
  UNIT_STRINGS(operator_id("silu_and_mul"), "");
  rules_free(&scan);
}

/* sglang.jit_kernel left in sglang 0.5.17, whatever the kernel release is. */
static void earlier_targets(void) {
  open_rules("0.3.0", "0.5.17");
  UNIT_STRINGS(python("sglang.jit_kernel.dsv3_router_gemm", "dsv3_router_gemm"), "dsv3_router_gemm");
  UNIT_STRINGS(python("sglang.jit_kernel.fused_a_gemm", "dsv3_fused_a_gemm"), "dsv3_fused_a_gemm");
  UNIT_STRINGS(python("sglang.jit_kernel", "dsv3_router_gemm"), "dsv3_router_gemm"); /* the module */
  UNIT_STRINGS(python("sglang.jit_kernel", "norm"), "");
  UNIT_STRINGS(python("sglang.kernels.ops.gemm.dsv3_router_gemm", "dsv3_router_gemm"), "");
  rules_free(&scan);
  open_rules("0.4.6", "0.5.16");
  UNIT_STRINGS(python("sglang.jit_kernel.dsv3_router_gemm", "dsv3_router_gemm"), "");
  rules_free(&scan);
  open_rules("0.4.6", NULL);
  UNIT_STRINGS(python("sglang.jit_kernel.dsv3_router_gemm", "dsv3_router_gemm"), "");
  rules_free(&scan);
}

static const char *target(const char *id, bool cxx) {
  const char *why = NULL;
  const struct catalog_symbol *symbol = catalog_find(&catalog_builtin, id);
  CU_ASSERT_PTR_NOT_NULL_FATAL(symbol);
  const struct catalog_route *route =
      cxx ? rules_cxx_target(&scan, symbol, &why) : rules_python_target(&scan, symbol, &why);
  CU_ASSERT_TRUE(route ? why == NULL : why && *why);
  return route ? route->module : "";
}

static void targets(void) {
  open_rules("0.4.6", NULL);
  UNIT_STRINGS(target("dsv3_router_gemm", false), "sgl_kernel_jit");
  UNIT_STRINGS(target("dsv3_router_gemm", true), "sgl_kernel_jit");
  UNIT_STRINGS(target("bmm_fp8", false), "");
  UNIT_STRINGS(target("gptq_marlin_repack", false), "");
  UNIT_STRINGS(target("gptq_marlin_repack", true), "");
  rules_free(&scan);
  open_rules("0.4.6", "0.5.18");
  UNIT_STRINGS(target("dsv3_fused_a_gemm", false), "sglang.kernels.ops.gemm.fused_a_gemm");
  UNIT_STRINGS(target("dsv3_fused_a_gemm", true), "");
  UNIT_STRINGS(target("merge_state", false), "");
  rules_free(&scan);
  open_rules("0.4.6", "0.5.15");
  UNIT_STRINGS(target("dsv3_fused_a_gemm", false), "sglang.jit_kernel.fused_a_gemm");
  rules_free(&scan);
  open_rules("0.4.6", "0.5.14");
  UNIT_STRINGS(target("dsv3_fused_a_gemm", false), "");
  rules_free(&scan);
}

static void check_why(const char *id, bool cxx, const char *want) {
  const char *why = "";
  const struct catalog_symbol *symbol = catalog_find(&catalog_builtin, id);
  CU_ASSERT_PTR_NOT_NULL_FATAL(symbol);
  CU_ASSERT_PTR_NULL(cxx ? rules_cxx_target(&scan, symbol, &why) : rules_python_target(&scan, symbol, &why));
  UNIT_STRINGS(why, want);
}

/* The replacement is named, and nothing is said that the catalog does not know. */
static void reasons(void) {
  open_rules("0.4.6", "0.5.23");
  check_why("dsv3_router_gemm", false,
            "sglang.kernels.ops.gemm.tiny_gemm.tiny_gemm_bf16 replaces it, but: out is the third positional argument "
            "and out_dtype is keyword-only; ask can_use_tiny_gemm(n, k, max_m=16) first");
  check_why("silu_and_mul", false,
            "sglang.kernels.ops.activation.activation.silu_and_mul replaces it, but is not known to take the same "
            "calls: compare them and change it by hand");
  check_why("merge_state", false,
            "flashinfer.merge_state is the nearest: returns new tensors; it has no output parameters");
  check_why("top_k_mask_logits", false,
            "flashinfer.sampling.top_k_mask_logits is the nearest: compare the calls and change it by hand");
  check_why("moe_sum", false, "there is no replacement: a JIT kernel is proposed");
  check_why("downcast_fp8", false, "the chosen sglang release has no replacement for it");
  check_why("dsv3_router_gemm", true, "sglang has no C++ replacement; --to jit has one for some functions");
  rules_free(&scan);
  open_rules("0.4.6", NULL);
  check_why(
      "merge_state", false,
      "sgl_kernel_jit.merge_state replaces it, but is not known to take the same calls: compare them and change it "
      "by hand");
  check_why("top_k_mask_logits", false,
            "flashinfer.sampling.top_k_mask_logits is the nearest: compare the calls and change it by hand");
  check_why("silu_and_mul", false, "sgl_kernel_jit has no kernel for it");
  check_why("top_k_mask_logits", true, "sgl_kernel_jit has no kernel for it");
  rules_free(&scan);
}

static void check_left(const char *id, enum catalog_layer layer, enum catalog_platform platform, const char *want) {
  char *left = rules_left(&scan, catalog_find(&catalog_builtin, id), layer, platform, "name");
  UNIT_STRINGS(left, want);
  free(left);
}

static void when_it_left(void) {
  open_rules("0.4.10", NULL);
  check_left("dsv3_router_gemm", CATALOG_LAYER_PYTHON, CATALOG_CUDA, "name left sgl_kernel in 0.4.5");
  check_left("dsv3_router_gemm", CATALOG_LAYER_SOURCES, CATALOG_CUDA, "name left sgl_kernel in 0.4.6");
  check_left("dsv3_router_gemm", CATALOG_LAYER_OPERATOR, CATALOG_CUDA, "The operator name left sgl_kernel in 0.4.5");
  check_left("dsv3_router_gemm", CATALOG_LAYER_OPERATOR, CATALOG_MUSA, "The operator name left sgl_kernel in 0.4.6");
  check_left("silu_and_mul", CATALOG_LAYER_PYTHON, CATALOG_CUDA, "name is no longer in sgl_kernel");
  rules_free(&scan);
}

/* The names in a text as "offset:length:id ...". */
static void check_names(const char *text, size_t from, const char *want) {
  char have[512] = "";
  const struct catalog_symbol *symbol;
  size_t length;
  for (size_t at = from;
       (at = rules_next_name(&scan, (const uint8_t *)text, strlen(text), at, &symbol, &length)) != SIZE_MAX;
       at += length) {
    size_t used = strlen(have);
    snprintf(have + used, sizeof have - used, "%zu:%zu:%s ", at, length, symbol->id);
  }
  UNIT_STRINGS(have, want);
}

static void words(void) {
  open_rules("0.4.6", NULL);
  check_names("bmm_fp8", 0, "0:7:bmm_fp8 ");
  check_names("xbmm_fp8 bmm_fp8x bmm_fp8_ 1bmm_fp8 (bmm_fp8)", 0, "37:7:bmm_fp8 ");
  check_names("bmm_fp8.bmm_fp8", 1, "8:7:bmm_fp8 "); /* a start inside of a word does not find its rest */
  check_names("\xc3\xa9"
              "bmm_fp8",
              0, "2:7:bmm_fp8 ");
  check_names("invokeRouterGemmFloatOutput(x)", 0, "0:27:dsv3_router_gemm ");
  check_names("store_kv_cache", 0, "0:14:set_kv_buffer_kernel "); /* the operator's name */
  check_names("", 0, "");
  rules_free(&scan);
}

static bool word_removed(const char *id, const char *word) {
  return rules_word_removed(&scan, catalog_find(&catalog_builtin, id), (const uint8_t *)word, strlen(word));
}

static void words_that_are_gone(void) {
  open_rules("0.4.6", NULL);
  /* What only the operator was called may be another library's. */
  CU_ASSERT_TRUE(word_removed("hadamard_transform", "hadamard_transform"));
  CU_ASSERT_FALSE(word_removed("hadamard_transform", "fast_hadamard_transform"));
  CU_ASSERT_TRUE(word_removed("bmm_fp8", "bmm_fp8"));
  /* Gone from one submodule, alive in another: the bare word says nothing. */
  CU_ASSERT_FALSE(word_removed("flash_attn_varlen_func", "flash_attn_varlen_func"));
  CU_ASSERT_TRUE(rules_any_removed(&scan, catalog_find(&catalog_builtin, "flash_attn_varlen_func")));
  rules_free(&scan);
  open_rules("0.4.4", NULL);
  CU_ASSERT_FALSE(word_removed("bmm_fp8", "bmm_fp8"));
  rules_free(&scan);
}

static void deleted_files(void) {
  size_t count;
  open_rules("0.4.6", NULL);
  const struct rules_file *file = rules_files(&scan, "dsv3_fused_a_gemm.cu and more", 20, &count);
  CU_ASSERT_EQUAL_FATAL(count, 1);
  UNIT_STRINGS(file->path, "gemm/dsv3_fused_a_gemm.cu");
  UNIT_STRINGS(file->symbol->id, "dsv3_fused_a_gemm");
  file = rules_files(&scan, "test_dsv3_router_gemm.py", 24, &count);
  CU_ASSERT_EQUAL_FATAL(count, 1);
  UNIT_STRINGS(file->path, "sgl-kernel/tests/test_dsv3_router_gemm.py");
  CU_ASSERT_PTR_NULL(rules_files(&scan, "dsv3_fused_a_gemm.c", 19, &count));
  rules_free(&scan);
  open_rules("0.4.4", NULL);
  CU_ASSERT_PTR_NULL(rules_files(&scan, "dsv3_fused_a_gemm.cu", 20, &count));
  rules_free(&scan);
}

static void positions(void) {
  static const char text[] = "a\nbc\r\n\f\x0b\n\nd";
  static const struct {
    size_t offset;
    uint32_t line, column;
  } rows[] = {{0, 1, 1}, {1, 1, 2}, {2, 2, 1},  {4, 2, 3},  {6, 3, 1},
              {8, 3, 3}, {9, 4, 1}, {10, 5, 1}, {11, 5, 2}, {99, 5, 2}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint32_t line = 0, column = 0;
    rules_position((const uint8_t *)text, sizeof text - 1, rows[i].offset, &line, &column);
    CU_ASSERT_EQUAL(line, rows[i].line);
    CU_ASSERT_EQUAL(column, rows[i].column);
  }
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static void one_result_a_line_and_symbol(void) {
  const struct catalog_symbol *bmm = catalog_find(&catalog_builtin, "bmm_fp8");
  const struct catalog_symbol *router = catalog_find(&catalog_builtin, "dsv3_router_gemm");
  struct result result = {0};
  result_find(&result, 3, 1, bmm, VERDICT_MENTION, EVIDENCE_TEXT, LEVEL_NOTE, "first");
  result_find(&result, 3, 9, bmm, VERDICT_MENTION, EVIDENCE_TEXT, LEVEL_NOTE, "second");
  CU_ASSERT_EQUAL_FATAL(result.findings_count, 1);
  UNIT_STRINGS(result.findings[0].message, "first");
  result_find(&result, 3, 9, bmm, VERDICT_REWRITE, EVIDENCE_AST, LEVEL_ERROR, "number %d", 3);
  UNIT_STRINGS(result.findings[0].message, "number 3");
  CU_ASSERT_EQUAL(result.findings[0].column, 9);
  CU_ASSERT_EQUAL(result.findings[0].verdict, VERDICT_REWRITE);
  result_find(&result, 3, 2, bmm, VERDICT_REPORT, EVIDENCE_AST, LEVEL_ERROR, "report");
  result_find(&result, 3, 1, bmm, VERDICT_REWRITE, EVIDENCE_AST, LEVEL_ERROR, "weaker");
  CU_ASSERT_EQUAL_FATAL(result.findings_count, 1);
  UNIT_STRINGS(result.findings[0].message, "report");
  result_find(&result, 3, 1, router, VERDICT_MENTION, EVIDENCE_TEXT, LEVEL_NOTE, "other symbol");
  result_find(&result, 4, 1, bmm, VERDICT_MENTION, EVIDENCE_TEXT, LEVEL_NOTE, "other line");
  CU_ASSERT_EQUAL(result.findings_count, 3);
  result_free(&result);
  CU_ASSERT_EQUAL(result.findings_count, 0);
}

static void the_worst_coverage_counts(void) {
  struct result result = {0};
  result_coverage(&result, COVERAGE_FULL, "nothing");
  CU_ASSERT_PTR_NULL(result.coverage_reason);
  result_coverage(&result, COVERAGE_PARTLY, "in line %d", 7);
  result_coverage(&result, COVERAGE_PARTLY, "later");
  UNIT_STRINGS(result.coverage_reason, "in line 7");
  result_coverage(&result, COVERAGE_NONE, "at all");
  result_coverage(&result, COVERAGE_PARTLY, "in part");
  CU_ASSERT_EQUAL(result.coverage, COVERAGE_NONE);
  UNIT_STRINGS(result.coverage_reason, "at all");
  result_free(&result);
}

static const struct unit_test tests[] = {
    {"removed_by_release", removed_by_release},
    {"earlier_targets", earlier_targets},
    {"targets", targets},
    {"reasons", reasons},
    {"when_it_left", when_it_left},
    {"words", words},
    {"words_that_are_gone", words_that_are_gone},
    {"deleted_files", deleted_files},
    {"positions", positions},
    {"one_result_a_line_and_symbol", one_result_a_line_and_symbol},
    {"the_worst_coverage_counts", the_worst_coverage_counts},
};
UNIT_MAIN("rules", tests)
