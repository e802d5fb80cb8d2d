/* scanner/fix_check.c: new content that is worse than the old one is refused. What the fronts make is right, so the
 * wrong content is made here. */
#include "scanner/fix.h"
#include "tests/unit.h"

#include <stdlib.h>
#include <unistd.h>

static char folder[64];
static struct scan scan;
static char message[512];

/* A tree with one file. */
static struct source_file *open_tree(const char *name, const char *text) {
  char path[256];
  strcpy(folder, "/tmp/test_fix_check.XXXXXX");
  if (!mkdtemp(folder))
    abort();
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  fputs(text, file);
  fclose(file);
  scan = (struct scan){.catalog = &catalog_builtin, .options.kernel = "0.4.6", .root = folder};
  CU_ASSERT_TRUE_FATAL(scan_walk(&scan, NULL, 0, 1, false, message, sizeof message));
  scan_run(&scan, 1, false);
  CU_ASSERT_EQUAL_FATAL(scan.files_count, 1);
  return &scan.files[0];
}

static void close_tree(void) {
  char command[128];
  scan_close(&scan);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (system(command) != 0)
    abort();
}

/* The edits of the file are replaced by one that makes `new` of each `old`. */
struct change {
  const char *old, *new;
};

static void set_edits(struct source_file *file, const struct change *changes, size_t count) {
  const char *text = (const char *)file->bytes;
  for (size_t i = 0; i < file->result.edits_count; i++)
    free(file->result.edits[i].text);
  file->result.edits_count = 0;
  for (size_t i = 0; i < count; i++) {
    const char *at = memmem(text, file->size, changes[i].old, strlen(changes[i].old));
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    size_t start = (size_t)(at - text);
    result_edit(&file->result, 0, start, start + strlen(changes[i].old), changes[i].new, strlen(changes[i].new));
  }
}

/* Are the changes refused? With what is in message; the file keeps its old bytes. */
static bool refuses(struct source_file *file, const struct change *changes, size_t count, size_t more) {
  struct result after = {0};
  const uint8_t *bytes = file->bytes;
  size_t size = file->size, new_size;
  uint8_t *new_bytes;
  set_edits(file, changes, count);
  CU_ASSERT_TRUE_FATAL(
      edit_compose(file->bytes, file->size, file->result.edits, count, &new_bytes, &new_size, message, sizeof message));
  for (size_t i = 0; i < more; i++) /* edits that were declined */
    result_edit(&file->result, 1, 0, 0, "", 0);
  bool good = fix_check(&scan, file, count, new_bytes, new_size, &after, message, sizeof message);
  CU_ASSERT_EQUAL(good, message[0] == '\0');
  CU_ASSERT_TRUE(file->bytes == bytes && file->size == size);
  result_free(&after);
  free(new_bytes);
  return !good;
}

#define CHANGES(...)                                                                                                   \
  ((const struct change[]){__VA_ARGS__}), sizeof((const struct change[]){__VA_ARGS__}) / sizeof(struct change)
#define GOOD(file, ...) CU_ASSERT_FALSE(refuses(file, CHANGES(__VA_ARGS__), 0))
#define BAD(says, file, ...)                                                                                           \
  do {                                                                                                                 \
    CU_ASSERT_TRUE(refuses(file, CHANGES(__VA_ARGS__), 0));                                                            \
    UNIT_CONTAINS(message, says);                                                                                      \
    UNIT_CONTAINS(message, "; the file is unchanged");                                                                 \
  } while (0)

static void python(void) {
  struct source_file *file = open_tree("a.py", "from sgl_kernel import dsv3_router_gemm\nx = 1\n");
  GOOD(file, {"sgl_kernel", "sgl_kernel_jit"});
  BAD("the new content cannot be parsed as Python (line 1: ", file, {"sgl_kernel", "sgl_kernel_jit"}, {"\n", " "});
  BAD("cannot be parsed as Python", file, {"from sgl_kernel", "  from sgl_kernel_jit"});
  BAD("would be edited again", file, {"x = 1", "x = 2"});
  CU_ASSERT_FALSE(refuses(file, CHANGES({"x = 1", "x = 2"}), 1));
  BAD("would use dsv3_router_gemm in a new place", file,
      {"from sgl_kernel import dsv3_router_gemm", "import torch\ntorch.ops.sgl_kernel.dsv3_router_gemm\n"
                                                  "torch.ops.sgl_kernel.dsv3_router_gemm"});
  close_tree();
}

static void notebook(void) {
  struct source_file *file = open_tree(
      "a.ipynb", "{\"cells\": [{\"cell_type\": \"code\", \"metadata\": {}, \"outputs\": [], \"source\": [\"from "
                 "sgl_kernel import dsv3_router_gemm\"]}], \"metadata\": {}, \"nbformat\": 4, "
                 "\"nbformat_minor\": 5}\n");
  CU_ASSERT_EQUAL(file->result.edits_count, 1);
  GOOD(file, {"sgl_kernel", "sgl_kernel_jit"});
  BAD("the new content ", file, {"sgl_kernel", "sgl_kernel_jit"}, {"gemm\"", "gemm"});
  BAD("the new content ", file, {"sgl_kernel import", "sgl_kernel_jit import import"});
  close_tree();
}

static void cxx(void) {
  struct source_file *file = open_tree("a.cc", "#include <sgl_kernel_ops.h>\n"
                                               "void f(at::Tensor& a) {\n"
                                               "  dsv3_router_gemm(a, a, a);\n"
                                               "  dsv3_router_gemm(a, a, {1, 2});\n"
                                               "  unknown(a);\n"
                                               "}\n");
  static const struct change include = {"void f", "#include \"sgl_kernel_jit/torch.h\"\nvoid f"};
  CU_ASSERT_EQUAL(file->result.edits_count, 3);
  /* What was wrong before may stay so, also in other words. */
  GOOD(file, include, {"dsv3_router_gemm(a, a, a)", "sgl_kernel_jit::dsv3_router_gemm(a, a, a)"},
       {"dsv3_router_gemm(a, a, {", "sgl_kernel_jit::dsv3_router_gemm(a, a, {"});
  BAD("would be wrong C++ (use of undeclared identifier 'sgl_kernel_jit'", file,
      {"dsv3_router_gemm(a, a, a)", "sgl_kernel_jit::dsv3_router_gemm(a, a, a)"});
  BAD("would be wrong C++ (expected ';' after expression)", file, include,
      {"dsv3_router_gemm(a, a, a);", "sgl_kernel_jit::dsv3_router_gemm(a, a, a)"});
  BAD("would be wrong C++ (too few arguments to function call", file, include,
      {"dsv3_router_gemm(a, a, a)", "sgl_kernel_jit::dsv3_router_gemm(a, a)"});
  BAD("would be wrong C++ (use of undeclared identifier 'unknown'", file, include,
      {"dsv3_router_gemm(a, a, a)", "unknown(a)"});
  close_tree();
}

static void header(void) {
  struct source_file *file = open_tree("a.h", "#pragma once\n#include <sgl_kernel_ops.h>\n\n"
                                              "inline void f(at::Tensor& a) { dsv3_router_gemm(a, a, a); }\n");
  static const struct change include = {"\n\n", "\n#include \"sgl_kernel_jit/torch.h\"\n\n"};
  CU_ASSERT_EQUAL(file->result.edits_count, 2);
  GOOD(file, include, {"dsv3_router_gemm", "sgl_kernel_jit::dsv3_router_gemm"});
  BAD("would be wrong C++ (no member named 'router'", file, include, {"dsv3_router_gemm", "sgl_kernel_jit::router"});
  close_tree();
}

static const struct unit_test tests[] = {
    {"python", python},
    {"notebook", notebook},
    {"cxx", cxx},
    {"header", header},
};
UNIT_MAIN("fix_check", tests)
