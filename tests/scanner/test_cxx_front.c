/* The C++ front on trees in memory: what the case folders cannot show or would need hundreds of files for. */
#include "scanner/crew.h"
#include "scanner/scanner.h"
#include "tests/unit.h"

#include <stdlib.h>

struct text {
  const char *path, *bytes; /* NULL path: the end */
  size_t size;              /* 0: up to the NUL */
};

static const char *verdict_name(enum verdict verdict) {
  return verdict == VERDICT_REWRITE ? "rewrite" : verdict == VERDICT_REPORT ? "report" : "mention";
}

static const char *evidence_name(enum evidence evidence) {
  return evidence == EVIDENCE_AST       ? "ast"
         : evidence == EVIDENCE_LEXICAL ? "lexical"
         : evidence == EVIDENCE_STRING  ? "string"
                                        : "text";
}

static char reason[200]; /* why the last tree was analysed only in part */

/* One line a finding: path:line symbol verdict evidence. The texts are sorted by path. */
static const char *find(const char *kernel, const struct text *texts) {
  static char out[20000];
  struct source_file files[20] = {0};
  size_t count = 0, used = 0;
  for (; texts[count].path; count++)
    files[count] = (struct source_file){
        .path = (char *)(uintptr_t)texts[count].path,
        .full_path = (char *)(uintptr_t)texts[count].path,
        .language = walk_language(texts[count].path),
        .bytes = (const uint8_t *)texts[count].bytes,
        .first_bytes = (const uint8_t *)texts[count].bytes,
        .size = texts[count].size ? texts[count].size : strlen(texts[count].bytes),
        .hit = true,
    };
  struct scan scan = {
      .catalog = &catalog_builtin, .options = {kernel, NULL}, .root = ".", .files = files, .files_count = count};
  rules_build(&scan);
  struct crew *crew = crew_new();
  cxx_index_plan(&scan, crew);
  crew_finish(crew, 1);
  out[0] = reason[0] = '\0';
  for (size_t i = 0; i < count; i++) {
    struct result result = {0};
    cxx_analyse(&scan, &files[i], &result);
    for (size_t k = 0; k < result.findings_count && used < sizeof out - 200; k++)
      used += (size_t)snprintf(out + used, sizeof out - used, "%s:%u %s %s %s\n", files[i].path,
                               result.findings[k].line, result.findings[k].symbol->id,
                               verdict_name(result.findings[k].verdict), evidence_name(result.findings[k].evidence));
    if (result.coverage != COVERAGE_FULL)
      snprintf(reason, sizeof reason, "%s", result.coverage_reason);
    result_free(&result);
  }
  for (size_t i = 0; i < count; i++)
    cxx_free_facts(&files[i]);
  cxx_index_free(&scan);
  rules_free(&scan);
  return out;
}

static const char *find_in(const char *path, const char *text) {
  const struct text texts[] = {{path, text, 0}, {0}};
  return find("0.4.6", texts);
}

#define WHEEL "#include \"sgl_kernel_ops.h\"\n"
#define CALL "void f(at::Tensor& o) { dsv3_router_gemm(o, o, o); }\n"

static void evidence(void) {
  UNIT_STRINGS(find_in("a.cc", WHEEL CALL), "a.cc:2 dsv3_router_gemm rewrite ast\n");
  UNIT_STRINGS(find_in("a.cc", WHEEL "void f(X& o) { dsv3_router_gemm(o, y::z(o), o); }\n"),
               "a.cc:2 dsv3_router_gemm rewrite lexical\n");
  UNIT_STRINGS(find_in("a.cc", WHEEL "#if 0\n" CALL "#endif\n"), "a.cc:3 dsv3_router_gemm report lexical\n");
}

/* The catalog's id is reported, whatever the C++ function or the operator is called. */
static void other_names(void) {
  UNIT_STRINGS(find_in("a.cc", WHEEL "void f(at::Tensor& o) {\n  store_kv_cache(o, o, o, o, o);\n"
                                     "  find(\"sgl_kernel::store_kv_cache\");\n  set_kv_buffer_kernel(o);\n}\n"),
               "a.cc:3 set_kv_buffer_kernel report ast\na.cc:4 set_kv_buffer_kernel report string\n");
}

static void alive(void) {
  const struct text texts[] = {
      {"a.cc", WHEEL "// dsv3_router_gemm\n" CALL "const char* s = \"sgl_kernel::dsv3_router_gemm\";\n", 0}, {0}};
  UNIT_STRINGS(find("0.4.4", texts), "");
  UNIT_STRINGS(find("0.4.5", texts), "a.cc:3 dsv3_router_gemm rewrite ast\na.cc:4 dsv3_router_gemm report string\n"
                                     "a.cc:2 dsv3_router_gemm mention text\n");
}

/* With a brace too many above, statements stand outside of functions: none of them declares another function. */
static void broken_braces(void) {
  UNIT_STRINGS(find_in("a.cc", WHEEL "void f(at::Tensor& o) {\n}\n  return::dsv3_router_gemm(o, o, o);\n}\n"
                                     "auto x = (dsv3_router_gemm(y(), y(), y()), 0);\n"),
               "a.cc:4 dsv3_router_gemm rewrite lexical\na.cc:6 dsv3_router_gemm rewrite ast\n");
  UNIT_STRINGS(find_in("a.cc", WHEEL "void g(X a, Y(b);\nvoid dsv3_router_gemm(float* a, Z b, Z c);\n"),
               "a.cc:3 dsv3_router_gemm report ast\n");
}

/* Of two headers of one name the nearer one is meant; "../" and folders in the include are followed. */
static void headers(void) {
  static const char other[] = "#include <torch/all.h>\nstatic void dsv3_router_gemm(at::Tensor&, const at::Tensor&, "
                              "const at::Tensor&);\n";
  const struct text texts[] = {
      {"a/ops.h", "#include \"sgl_kernel_ops.h\"\n", 0},
      {"a/src/one.cc", "#include \"../ops.h\"\n" CALL, 0},
      {"a/src/two.cc", "#include <ops.h>\n" CALL, 0},
      {"b/include/deep/ops.h", other, 0},
      {"b/src/four.cc", "#include \"ops.h\"\n" CALL, 0},
      {"b/src/three.cc", "#include \"deep/ops.h\"\n" CALL, 0},
      {0},
  };
  UNIT_STRINGS(find("0.4.6", texts), "a/src/one.cc:2 dsv3_router_gemm rewrite ast\n"
                                     "a/src/two.cc:2 dsv3_router_gemm rewrite ast\n");
}

/* A header that three headers and two sources reach is read once for each, whatever its guard. */
static void circles(void) {
  const struct text texts[] = {
      {"a.h", "#include \"b.h\"\n" CALL, 0},
      {"b.h", "#include \"a.h\"\n#include \"b.h\"\n" WHEEL, 0},
      {"c.cc", "#include \"c.cc\"\n#include \"a.h\"\nvoid g(at::Tensor& o) { dsv3_fused_a_gemm(o, o, o); }\n", 0},
      {0},
  };
  UNIT_STRINGS(find("0.4.6", texts), "a.h:2 dsv3_router_gemm rewrite ast\nc.cc:3 dsv3_fused_a_gemm rewrite ast\n");
}

/* --- hostile text ------------------------------------------------------------------------------------------------- */

/* WHEEL CALL before, `one` n times, after. */
static char *repeated(const char *before, const char *one, size_t n, const char *after) {
  size_t length = strlen(one), head = strlen(WHEEL CALL) + strlen(before);
  char *text = malloc(head + n * length + strlen(after) + 1);
  snprintf(text, head + 1, "%s%s", WHEEL CALL, before);
  for (size_t i = 0; i < n; i++)
    memcpy(text + head + i * length, one, length);
  strcpy(text + head + n * length, after);
  return text;
}

/* libclang's stack would not last for these: the lexer decides, and the file counts as analysed in part. */
static void deep_text(void) {
  static const struct {
    const char *before, *one, *after;
  } cases[] = {
      {"int x = ", "(", "1;\n"},
      {"", "{", "\n"},
      {"bool x = ", "!", "1;\n"},
      {"int x = ", "- ", "1;\n"},
      {"int x = ", "(int)", "1;\n"},
      {"int x = ", "1 + ", "1;\n"},
      {"int x = ", "1 ? 2 : ", "3;\n"},
      {"void g(int a) { ", "if (a) {} else ", ";}\n"},
      {"void g(int a) { a ", "= a ", ";}\n"},
      {"", "A<", "int> x;\n"},
      {"int ", "*", "x;\n"},
      {"auto x = a", ".b()", ";\n"},
      {"auto x = ", "[] { return ", ";\n"},
      {"namespace a", "::b", "{}\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *text = repeated(cases[i].before, cases[i].one, 50000, cases[i].after);
    UNIT_STRINGS(find_in("a.cc", text), "a.cc:2 dsv3_router_gemm rewrite lexical\n");
    UNIT_CONTAINS(reason, "nests deeper than libclang can follow");
    free(text);
  }
}

/* Nobody asks libclang about these: they count as analysed in full. */
static void deep_text_of_others(void) {
  char *text = repeated("int x = ", "(", 50000, "1; // dsv3_router_gemm\n");
  text[0] = text[1] = '/'; /* the #include of the wheel's header and the call in front become comments */
  char *call = strchr(text, '\n');
  memcpy(call + 1, "//", 2);
  UNIT_CONTAINS(find_in("a.cc", text), "dsv3_router_gemm mention");
  UNIT_STRINGS(reason, "");
  free(text);
}

/* Long, but flat: libclang takes it. */
static void long_text(void) {
  static const struct {
    const char *before, *one, *after;
  } cases[] = {
      {"const int t[][2] = {", "{1, -2}, ", "};\n"},
      {"auto s = ", "\"a\" ", ";\n"},
      {"void g() { ", "k<<<1, 2>>>(3); ", "}\n"},
      {"enum E { a0", ", a = 3", "};\n"},
      {"", "struct S; ", "\n"},
      {"", "}", "\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *text = repeated(cases[i].before, cases[i].one, 20000, cases[i].after);
    UNIT_STRINGS(find_in("a.cc", text), "a.cc:2 dsv3_router_gemm rewrite ast\n");
    UNIT_STRINGS(reason, "");
    free(text);
  }
}

static void macro_bombs(void) {
  char text[20000] = WHEEL CALL;
  for (int i = 0; i < 40; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "#define A%d A%d A%d\n", i, i + 1, i + 1);
  strcat(text, "int y = A0;\n");
  UNIT_STRINGS(find_in("a.cc", text), "a.cc:2 dsv3_router_gemm rewrite lexical\n");
  UNIT_CONTAINS(reason, "macros expand");
  UNIT_STRINGS(find_in("a.cc",
                       WHEEL CALL "#define X(a) a a\nint y = X(X(X(X(X(X(X(X(X(X(X(X(X(X(X(X(X(X(X(X(X(X(X(X(X(X(1"
                                  "))))))))))))))))))))))))));\n"),
               "a.cc:2 dsv3_router_gemm rewrite lexical\n");
  UNIT_CONTAINS(reason, "macros expand");
  /* Many macros that each expand a little are nothing special. */
  UNIT_STRINGS(find_in("a.cc",
                       WHEEL CALL "#define X(a, b, c) (a) + (b) + (c)\n"
                                  "int y = X(X(1, 2, X(1, 2, 3)), X(4, X(5, 6, 7), 8), X(X(1, 2, 3), 9, 9));\n"),
               "a.cc:2 dsv3_router_gemm rewrite ast\n");
  UNIT_STRINGS(reason, "");
}

/* Nothing outside of the tree is opened, in no spelling: /dev/zero has no end. Pragmas that make Clang crash do
 * nothing. */
static void foreign_files(void) {
  UNIT_STRINGS(find_in("a.cc", WHEEL "#include \"/dev/zero\"\n#include </dev/zero>\n#inc\\\nlude \"/dev/zero\"\n"
                                     "%:include \"/dev/zero\"\n#embed \"/dev/zero\"\n#include_next \"/dev/zero\"\n"
                                     "#define Z \"/dev/zero\"\n#include Z\n#include \"../../../../../../dev/zero\"\n"
                                     "#pragma GCC dependency \"/dev/zero\"\n" CALL),
               "a.cc:13 dsv3_router_gemm rewrite ast\n");
  UNIT_STRINGS(find_in("a.cc", WHEEL "#pragma clang __debug crash\n_Pragma(\"clang __debug parser_crash\")\n"
                                     "#define P _Pragma(\"clang __debug crash\")\nP\n" CALL),
               "a.cc:6 dsv3_router_gemm rewrite ast\n");
}

/* Namespaces that open each other in circles, and a class that is its own base. */
static void circular_scopes(void) {
  UNIT_STRINGS(find_in("a.cc", "namespace b { using namespace a; }\nnamespace a { using namespace b; }\n"
                               "using namespace a;\nnamespace c = c;\nnamespace d = e;\nnamespace e = d;\n"
                               "struct S : S { void g(X& o) { dsv3_router_gemm(o, o, o); } };\n"
                               "void f(X& o) { a::b::dsv3_router_gemm(o, o, o); c::dsv3_router_gemm(o, o, o); "
                               "d::dsv3_router_gemm(o, o, o); }\n"),
               "a.cc:7 dsv3_router_gemm report lexical\n");
}

/* Every beginning of a source: whatever it means, nothing breaks. */
static void every_prefix(void) {
  static const char text[] =
      WHEEL "namespace a { template <class T> struct S : T { S() : f_{&dsv3_router_gemm} {} }; }\n"
            "#if defined(A) && B(1)\nusing ::dsv3_router_gemm;\n#else\nextern \"C\" {\n#endif\n}\n"
            "#define M(x) do { x; } while (0) \\\n\n"
            "TORCH_LIBRARY(sgl_kernel, m) { m.def(\"dsv3_router_gemm(Tensor a) -> ()\"); }\n"
            "auto l = [x = 1](int y) -> int { k<<<1, 2>>>(R\"(a)\"); M(dsv3_router_gemm(o, o, o)); return y; };\n"
            "py::module_::import(\"sgl_kernel\").attr(\"dsv3_router_gemm\"); // dsv3_router_gemm\n";
  for (size_t size = 1; size < sizeof text; size += 3) {
    char *copy = malloc(size);
    memcpy(copy, text, size);
    const struct text texts[] = {{"a.cc", copy, size}, {0}};
    find("0.4.6", texts);
    free(copy);
  }
  UNIT_STRINGS(find_in("a.cc", text),
               "a.cc:2 dsv3_router_gemm report lexical\na.cc:4 dsv3_router_gemm report lexical\n"
               "a.cc:12 dsv3_router_gemm report lexical\na.cc:11 dsv3_router_gemm report string\n"
               "a.cc:13 dsv3_router_gemm report string\n");
}

static const struct unit_test tests[] = {
    {"evidence", evidence},
    {"other_names", other_names},
    {"alive", alive},
    {"headers", headers},
    {"circles", circles},
    {"deep_text", deep_text},
    {"deep_text_of_others", deep_text_of_others},
    {"long_text", long_text},
    {"macro_bombs", macro_bombs},
    {"foreign_files", foreign_files},
    {"circular_scopes", circular_scopes},
    {"broken_braces", broken_braces},
    {"every_prefix", every_prefix},
};

UNIT_MAIN("cxx_front", tests)
