/* The generator: the static table is the YAML file, the same catalog gives the same bytes, a failure leaves the folder
 * as it was. */
#include "tests/unit.h"

#include "catalog/catalog_private.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const outputs[] = {"catalog_builtin.c",   "compat_catalog.py", "compat_exports.map",
                                      "compat_old.pyi",      "compat_table.c",    "compat_table.h",
                                      "compat_tombstones.h", "cxx_prelude.c",     "sgl_kernel_compat_old.h"};
enum { OUTPUTS = sizeof outputs / sizeof outputs[0] };
static const char prelude[] = "first line\nlast \"line\"\n";

static struct catalog *load(const char *name) {
  char path[300], message[300] = "";
  snprintf(path, sizeof path, "%.*s/%s", (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__, name);
  struct catalog *catalog = catalog_load(path, message, sizeof message);
  UNIT_STRINGS(message, "");
  CU_ASSERT_PTR_NOT_NULL_FATAL(catalog);
  return catalog;
}

/* --- builtin equals YAML --------------------------------------------------------------------------------------------
 */

/* Optional strings may be NULL, in both or in neither. */
static void same_text(const char *have, const char *want) {
  CU_ASSERT_EQUAL(have == NULL, want == NULL);
  if (have && want)
    UNIT_STRINGS(have, want);
}

static void same_list(const char *const *have, unsigned have_count, const char *const *want, unsigned want_count) {
  CU_ASSERT_EQUAL_FATAL(have_count, want_count);
  CU_ASSERT_EQUAL(have == NULL, have_count == 0);
  for (unsigned i = 0; i < want_count; i++)
    same_text(have[i], want[i]);
}

static void same_platforms(const enum catalog_platform *have, unsigned have_count, const enum catalog_platform *want,
                           unsigned want_count) {
  CU_ASSERT_EQUAL_FATAL(have_count, want_count);
  CU_ASSERT_EQUAL(have == NULL, have_count == 0);
  for (unsigned i = 0; i < want_count; i++)
    CU_ASSERT_EQUAL(have[i], want[i]);
}

static void same_route(const struct catalog_route *have, const struct catalog_route *want) {
  CU_ASSERT_EQUAL(have->kind, want->kind);
  same_platforms(have->platforms, have->platforms_count, want->platforms, want->platforms_count);
  same_text(have->module, want->module);
  same_text(have->name, want->name);
  same_text(have->from, want->from);
  same_text(have->until, want->until);
  CU_ASSERT_EQUAL(have->python, want->python);
  CU_ASSERT_EQUAL(have->cxx, want->cxx);
  same_text(have->note, want->note);
  CU_ASSERT_EQUAL_FATAL(have->arguments_count, want->arguments_count);
  CU_ASSERT_EQUAL(memcmp(&have->limits, &want->limits, sizeof have->limits), 0);
  CU_ASSERT_EQUAL(have->arguments == NULL, have->arguments_count == 0);
  for (unsigned i = 0; i < want->arguments_count; i++) {
    same_text(have->arguments[i].from, want->arguments[i].from);
    same_text(have->arguments[i].to, want->arguments[i].to);
  }
}

static void same_symbol(const struct catalog_symbol *have, const struct catalog_symbol *want) {
  same_text(have->id, want->id);
  CU_ASSERT_EQUAL(have->status, want->status);
  same_text(have->family, want->family);
  same_text(have->summary, want->summary);
  CU_ASSERT_EQUAL_FATAL(have->python_count, want->python_count);
  for (unsigned i = 0; i < want->python_count; i++) {
    same_text(have->python[i].module, want->python[i].module);
    same_text(have->python[i].name, want->python[i].name);
  }
  same_text(have->python_signature, want->python_signature);
  same_text(have->op_name, want->op_name);
  same_text(have->op_schema, want->op_schema);
  same_text(have->cxx.name, want->cxx.name);
  same_text(have->cxx.scope, want->cxx.scope);
  same_text(have->cxx.declaration, want->cxx.declaration);
  same_text(have->cxx.mangled, want->cxx.mangled);
  CU_ASSERT_EQUAL(have->cxx.parameters, want->cxx.parameters);
  same_list(have->cxx.templates, have->cxx.templates_count, want->cxx.templates, want->cxx.templates_count);
  same_text(have->added_in, want->added_in);
  CU_ASSERT_EQUAL_FATAL(have->removals_count, want->removals_count);
  for (unsigned i = 0; i < want->removals_count; i++) {
    CU_ASSERT_EQUAL(have->removals[i].layer, want->removals[i].layer);
    CU_ASSERT_EQUAL(have->removals[i].platform, want->removals[i].platform);
    same_text(have->removals[i].last_with, want->removals[i].last_with);
    same_text(have->removals[i].first_without, want->removals[i].first_without);
    same_text(have->removals[i].change, want->removals[i].change);
    same_text(have->removals[i].commit, want->removals[i].commit);
    same_text(have->removals[i].date, want->removals[i].date);
  }
  same_list(have->sources, have->sources_count, want->sources, want->sources_count);
  same_list(have->tests, have->tests_count, want->tests, want->tests_count);
  same_list(have->benchmarks, have->benchmarks_count, want->benchmarks, want->benchmarks_count);
  same_text(have->stage, want->stage);
  same_text(have->stage_end, want->stage_end);
  CU_ASSERT_EQUAL_FATAL(have->routes_count, want->routes_count);
  for (unsigned i = 0; i < want->routes_count; i++)
    same_route(&have->routes[i], &want->routes[i]);
  CU_ASSERT_EQUAL_FATAL(have->elsewhere_count, want->elsewhere_count);
  for (unsigned i = 0; i < want->elsewhere_count; i++)
    same_route(&have->elsewhere[i], &want->elsewhere[i]);
  same_list(have->traps, have->traps_count, want->traps, want->traps_count);
  same_list(have->provenance, have->provenance_count, want->provenance, want->provenance_count);
}

static void builtin_is_the_file(void) {
  struct catalog *catalog = load("../../catalog/removals.yaml");
  const struct catalog_library *have = &catalog_builtin.library, *want = &catalog->library;
  same_text(have->package, want->package);
  same_text(have->op_namespace, want->op_namespace);
  same_text(have->cxx_header, want->cxx_header);
  same_text(have->extension, want->extension);
  same_text(have->source_folder, want->source_folder);
  same_list(have->distributions, have->distributions_count, want->distributions, want->distributions_count);
  same_list(have->releases, have->releases_count, want->releases, want->releases_count);
  same_list(have->sglang_releases, have->sglang_releases_count, want->sglang_releases, want->sglang_releases_count);
  CU_ASSERT_EQUAL_FATAL(have->sglang_pins_count, want->sglang_pins_count);
  for (unsigned i = 0; i < want->sglang_pins_count; i++) {
    same_text(have->sglang_pins[i].release, want->sglang_pins[i].release);
    same_text(have->sglang_pins[i].kernel, want->sglang_pins[i].kernel);
    same_text(have->sglang_pins[i].torch, want->sglang_pins[i].torch);
    same_text(have->sglang_pins[i].flashinfer, want->sglang_pins[i].flashinfer);
  }
  CU_ASSERT_EQUAL_FATAL(have->wheels_count, want->wheels_count);
  CU_ASSERT(want->wheels_count > 3);
  for (unsigned i = 0; i < want->wheels_count; i++) {
    same_text(have->wheels[i].distribution, want->wheels[i].distribution);
    same_platforms(have->wheels[i].platforms, have->wheels[i].platforms_count, want->wheels[i].platforms,
                   want->wheels[i].platforms_count);
    same_text(have->wheels[i].from, want->wheels[i].from);
    same_text(have->wheels[i].until, want->wheels[i].until);
  }
  CU_ASSERT_EQUAL_FATAL(catalog_builtin.symbols_count, catalog->symbols_count);
  CU_ASSERT(catalog->symbols_count > 90);
  for (unsigned i = 0; i < catalog->symbols_count; i++)
    same_symbol(&catalog_builtin.symbols[i], &catalog->symbols[i]);
  catalog_free(catalog);
}

/* --- files ----------------------------------------------------------------------------------------------------------
 */

static char *new_folder(void) {
  char *folder = strdup("/tmp/sgl-catalog-XXXXXX");
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
  return folder;
}

static char *read_output(const char *folder, const char *name) {
  char path[300];
  size_t size;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  char *text = catalog_read_file(path, &size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  return text;
}

static unsigned count_files(const char *folder) {
  unsigned count = 0;
  DIR *dir = opendir(folder);
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
    count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
  closedir(dir);
  return count;
}

static void drop_folder(char *folder) {
  char path[300];
  for (int i = 0; i < OUTPUTS; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, outputs[i]);
    unlink(path);
  }
  CU_ASSERT_EQUAL(rmdir(folder), 0); /* nothing else was left there */
  free(folder);
}

static void generate(const struct catalog *catalog, const char *folder) {
  char message[300] = "";
  CU_ASSERT_TRUE(catalog_generate(catalog, prelude, folder, message, sizeof message));
  UNIT_STRINGS(message, "");
  CU_ASSERT_EQUAL(count_files(folder), OUTPUTS);
}

static void same_bytes(void) {
  char *one = new_folder(), *two = new_folder();
  struct catalog *catalog = load("../../catalog/removals.yaml");
  generate(catalog, one);
  generate(&catalog_builtin, two); /* from the other origin, too */
  generate(&catalog_builtin, two); /* and over the files of before */
  for (int i = 0; i < OUTPUTS; i++) {
    char *a = read_output(one, outputs[i]), *b = read_output(two, outputs[i]);
    CU_ASSERT_STRING_EQUAL(a, b);
    CU_ASSERT(strlen(a) > 50);
    CU_ASSERT_PTR_NULL(strstr(a, one)); /* no path of this machine */
    free(a);
    free(b);
  }
  catalog_free(catalog);
  drop_folder(one);
  drop_folder(two);
}

static void contents(void) {
  char *folder = new_folder();
  generate(&catalog_builtin, folder);
  char *map = read_output(folder, "compat_exports.map");
  UNIT_CONTAINS(map, "# Generated by sgl-catalog from removals.yaml. Never edited by hand.\n"
                     "SGL_KERNEL_COMPAT_1.0 {\n"
                     "  global:\n    _Z");
  UNIT_CONTAINS(map, "    _Z16dsv3_router_gemmRN2at6TensorERKS0_S3_;\n"); /* with a kernel */
  UNIT_CONTAINS(map, "    _Z14awq_dequantizeN2at6TensorES0_S0_;\n");      /* without one */
  CU_ASSERT_PTR_NULL(strstr(map, "_Z7rmsnormRN2at6TensorES1_S1_db"));     /* only planned */
  UNIT_CONTAINS(map, ";\n    sgl_compat_*;\n  local:\n    *;\n};\n");
  free(map);
  char *header = read_output(folder, "compat_table.h");
  UNIT_CONTAINS(header, "#define COMPAT_MANGLED_dsv3_router_gemm \"_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_\"\n");
  UNIT_CONTAINS(header, "#define COMPAT_OP_NAMESPACE \"sgl_kernel\"\n");
  free(header);
  char *table = read_output(folder, "compat_table.c");
  UNIT_CONTAINS(table,
                ".advice = \"use sgl_kernel_jit.dsv3_router_gemm\", .change = \"#21531\", .date = \"2026-06-26\", "
                ".last_with = \"0.4.4\", .first_without = \"0.4.5\", .gone_in = \"0.4.6\", "); /* its sources */
  UNIT_CONTAINS(table, "{.id = \"hadamard_transform\", .name = \"fast_hadamard_transform\", ");
  UNIT_CONTAINS(table, "there is no replacement: sglang dropped QServe quantization altogether.");
  CU_ASSERT_PTR_NULL(strstr(table, "\"silu_and_mul\"")); /* planned: the shim has nothing to do with it */
  free(table);
  char *python = read_output(folder, "compat_catalog.py");
  UNIT_CONTAINS(python, "PACKAGE = \"sgl_kernel\"\n");
  UNIT_CONTAINS(python, "(\"sgl_kernel.gemm\", \"dsv3_router_gemm\"): \"dsv3_router_gemm\",\n");
  UNIT_CONTAINS(python, "\"change\": \"#31202\", \"last_with\": \"0.4.5\", \"first_without\": \"0.4.6\", "
                        "\"routes\": ((\"jit\", \"sgl_kernel_jit\", \"bmm_fp8\", None, None, ), (\"library\", "
                        "\"flashinfer\", \"bmm_fp8\", None, None, ), )},\n");
  /* Reordered, other defaults: no route takes the old call. */
  const char *refused = strstr(python, "    \"moe_fused_gate\": {");
  CU_ASSERT_PTR_NOT_NULL_FATAL(refused);
  CU_ASSERT(strncmp(strstr(refused, "\"routes\": "), "\"routes\": ()},\n", 15) == 0);
  CU_ASSERT_PTR_NULL(strstr(python, "\"silu_and_mul\""));
  const char *operators = strstr(python, "\nOPERATORS = {\n");
  CU_ASSERT_PTR_NOT_NULL_FATAL(operators);
  UNIT_CONTAINS(
      operators,
      "    \"store_kv_cache\": {\"id\": \"set_kv_buffer_kernel\", \"schema\": \"store_kv_cache(Tensor k_cache, ");
  UNIT_CONTAINS(operators, "\"note\": \"the scale factors come back as uint8, in the swizzled 128x4 layout.\"");
  free(python);
  python = read_output(folder, "compat_old.pyi");
  UNIT_CONTAINS(python,
                "\n@deprecated(\"use sgl_kernel_jit.dsv3_fused_a_gemm\")\ndef dsv3_fused_a_gemm(mat_a: torch.Tensor, "
                "mat_b: torch.Tensor, output: Optional[torch.Tensor] = None) -> torch.Tensor: ...\n");
  free(python);
  char *old = read_output(folder, "sgl_kernel_compat_old.h");
  UNIT_CONTAINS(old, "\nSGL_COMPAT_DEPRECATED(\"sgl_kernel has dropped it in 0.4.5 (#21531): use "
                     "sgl_kernel_jit::dsv3_router_gemm of sgl_kernel_jit/torch.h\",\n"
                     "                      \"sgl_kernel_jit::dsv3_router_gemm\")\n"
                     "void dsv3_router_gemm(at::Tensor& output, const at::Tensor& mat_a, const at::Tensor& mat_b);\n");
  CU_ASSERT_PTR_NULL(strstr(old, "moe_fused_gate")); /* a name without a kernel here */
  free(old);
  char *text = read_output(folder, "cxx_prelude.c");
  UNIT_CONTAINS(text, "const char cxx_prelude[] =\n    \"first line\\n\"\n    \"last \\\"line\\\"\\n\"\n    \"\";\n");
  free(text);
  drop_folder(folder);
}

/* What C would read differently: quotes, backslashes, trigraphs, bytes above 127. */
static void escapes(void) {
  char *folder = new_folder();
  struct catalog *catalog = load("data/small.yaml");
  generate(catalog, folder);
  char *text = read_output(folder, "catalog_builtin.c");
  UNIT_CONTAINS(text, ".summary = \"Says \\\"what\\?\\?/\\\", then a backslash \\\\ and an umlaut \\303\\274.\", ");
  UNIT_CONTAINS(text, ".op_namespace = \"\", .cxx_header = \"\", .extension = \"\", .source_folder = \"\", .releases = "
                      "library0_releases, .releases_count = 2, }");
  free(text);
  text = read_output(folder, "compat_catalog.py");
  UNIT_CONTAINS(text, "\"signature\": \"(x, /, y: str = 'a, b', *, z: dict[str, int] = {'k': 1}) -> None\", ");
  UNIT_CONTAINS(text, "\"routes\": ()}"); /* y has no counterpart */
  free(text);
  catalog_free(catalog);
  drop_folder(folder);
}

/* An empty catalog is C, too. */
static void no_rows(void) {
  char *folder = new_folder();
  struct catalog catalog = {.library = {.package = "acme", .op_namespace = "", .cxx_header = ""}};
  generate(&catalog, folder);
  char *text = read_output(folder, "catalog_builtin.c");
  UNIT_CONTAINS(text, "const struct catalog catalog_builtin = {\n    .library = {.package = \"acme\", ");
  CU_ASSERT_PTR_NULL(strstr(text, "symbols[]"));
  free(text);
  drop_folder(folder);
}

static void failures_leave_nothing(void) {
  char message[300] = "", path[300];
  CU_ASSERT_FALSE(catalog_generate(&catalog_builtin, prelude, "/no/such/folder", message, sizeof message));
  UNIT_STRINGS(message, "/no/such/folder/catalog_builtin.c: cannot write: No such file or directory");
  char *folder = new_folder();
  /* A folder stands where the first file should go: the rename fails, and no temporary file stays. */
  snprintf(path, sizeof path, "%s/catalog_builtin.c", folder);
  CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
  CU_ASSERT_FALSE(catalog_generate(&catalog_builtin, prelude, folder, message, sizeof message));
  UNIT_CONTAINS(message, "/catalog_builtin.c: cannot rename: Is a directory");
  CU_ASSERT_EQUAL(count_files(folder), 1);
  CU_ASSERT_EQUAL(rmdir(path), 0);
  drop_folder(folder);
}

static const struct unit_test tests[] = {
    {"builtin_is_the_file", builtin_is_the_file},
    {"same_bytes", same_bytes},
    {"contents", contents},
    {"escapes", escapes},
    {"no_rows", no_rows},
    {"failures_leave_nothing", failures_leave_nothing},
};
UNIT_MAIN("catalog.gen", tests)
