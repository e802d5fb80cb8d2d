/* The changes of names that stay: the census has each, the build has what the file has, and what a signature does to a
 * call. */
#include "tests/unit.h"

#include "catalog/catalog_private.h"

#include <stdlib.h>
#include <string.h>

/* --- the rows ----------------------------------------------------------------------------------------------------- */

static bool for_platform(const struct catalog_change *change, const char *platform) {
  for (unsigned i = 0; i < change->platforms_count; i++)
    if (strcmp(catalog_platform_word(change->platforms[i]), platform) == 0)
      return true;
  return false;
}

/* An id of the census: "op cuda:fwd@0.4.4", "cpp fast_topk@0.3.16.post3", "moe.topk_softmax@0.2.2". C++ rows are named
 * by the operator there. */
static bool has_row(const char *id) {
  char platform[20] = "", name[200], want[260];
  const char *prefix = "python";
  if (strncmp(id, "op ", 3) == 0) {
    prefix = "operator";
    const char *colon = strchr(id, ':');
    snprintf(platform, sizeof platform, "%.*s", (int)(colon - id - 3), id + 3);
    snprintf(name, sizeof name, "%s", colon + 1);
  } else if (strncmp(id, "cpp ", 4) == 0) {
    prefix = "cxx";
    snprintf(platform, sizeof platform, "cuda");
    const char *at = strchr(id, '@');
    bool interface = strncmp(id + 4, "fast_topk", 9) == 0;
    const char *fused = strstr(id, "_fused@");
    snprintf(name, sizeof name, "%.*s%s%s", (int)((fused ? fused : at) - id - 4), id + 4, interface ? "_interface" : "",
             at);
  } else {
    snprintf(name, sizeof name, "%s", strchr(id, '.') + 1);
  }
  snprintf(want, sizeof want, "%s:%s", prefix, name);
  for (unsigned i = 0; i < catalog_builtin.changes_count; i++) {
    const struct catalog_change *change = &catalog_builtin.changes[i];
    size_t length = strlen(want);
    if (strncmp(change->id, want, length) == 0 && (!change->id[length] || change->id[length] == '/') &&
        (!*platform || for_platform(change, platform)))
      return true;
  }
  return false;
}

static void census_is_there(void) {
  char path[300];
  size_t size;
  unsigned count = 0;
  snprintf(path, sizeof path, "%.*s/data/census_changes.txt", (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
  char *text = catalog_read_file(path, &size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), count++)
    if (!has_row(line)) {
      fprintf(stderr, "  no row for %s\n", line);
      CU_FAIL("a change of the census has no row");
    }
  CU_ASSERT_EQUAL(count, 166);
  free(text);
}

static const struct catalog_change *find(const char *id) {
  for (unsigned i = 0; i < catalog_builtin.changes_count; i++)
    if (strcmp(catalog_builtin.changes[i].id, id) == 0)
      return &catalog_builtin.changes[i];
  return NULL;
}

/* What the census has of modules, wheels and silent changes; the package sglang.jit_kernel is in the routes. */
static void others_are_there(void) {
  static const char *const ids[] = {
      "distribution:deep_gemm@0.4.2.post1",
      "distribution:flash_attn.cute@0.4.0",
      "distribution:sgl-kernel@0.4.0",
      "module:sgl_kernel.common_ops@0.3.13",
      "module:sgl_kernel.expert_specilization@0.3.16.post1",
      "python:dsv3_router_gemm@0.2.6.post1",
      "python:flash_attn_varlen_func@0.4.0",
      "python:flash_attn_with_kvcache@0.4.0",
  };
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
    CU_ASSERT_PTR_NOT_NULL(find(ids[i]));
  unsigned routes = 0;
  for (unsigned i = 0; i < catalog_builtin.symbols_count; i++)
    for (unsigned k = 0; k < catalog_builtin.symbols[i].routes_count; k++) {
      const struct catalog_route *route = &catalog_builtin.symbols[i].routes[k];
      if (strncmp(route->module, "sglang.jit_kernel", 17) != 0)
        continue;
      routes++;
      CU_ASSERT(route->until && catalog_version_compare(route->until, "0.5.17") <= 0);
    }
  CU_ASSERT(routes > 10);
}

static void same_list(const char *const *have, unsigned have_count, const char *const *want, unsigned want_count) {
  CU_ASSERT_EQUAL_FATAL(have_count, want_count);
  for (unsigned i = 0; i < want_count; i++)
    UNIT_STRINGS(have[i], want[i]);
}

static void same_optional(const char *have, const char *want) {
  CU_ASSERT_EQUAL(have == NULL, want == NULL);
  if (have && want)
    UNIT_STRINGS(have, want);
}

static void builtin_is_the_file(void) {
  char path[300], message[300] = "";
  snprintf(path, sizeof path, "%.*s/../../catalog/removals.yaml", (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
  struct catalog *catalog = catalog_load(path, message, sizeof message);
  CU_ASSERT_PTR_NOT_NULL_FATAL(catalog);
  CU_ASSERT_EQUAL_FATAL(catalog_builtin.changes_count, catalog->changes_count);
  for (unsigned i = 0; i < catalog->changes_count; i++) {
    const struct catalog_change *have = &catalog_builtin.changes[i], *want = &catalog->changes[i];
    UNIT_STRINGS(have->id, want->id);
    CU_ASSERT(have->what == want->what && have->breaks == want->breaks);
    UNIT_STRINGS(have->name, want->name);
    same_list(have->modules, have->modules_count, want->modules, want->modules_count);
    same_list(have->distributions, have->distributions_count, want->distributions, want->distributions_count);
    same_list(have->provenance, have->provenance_count, want->provenance, want->provenance_count);
    CU_ASSERT_EQUAL_FATAL(have->platforms_count, want->platforms_count);
    for (unsigned k = 0; k < want->platforms_count; k++)
      CU_ASSERT_EQUAL(have->platforms[k], want->platforms[k]);
    same_optional(have->last_with, want->last_with);
    same_optional(have->change, want->change);
    same_optional(have->date, want->date);
    same_optional(have->when_given, want->when_given);
    same_optional(have->when_left_out, want->when_left_out);
    UNIT_STRINGS(have->release, want->release);
    UNIT_STRINGS(have->before, want->before);
    UNIT_STRINGS(have->after, want->after);
    UNIT_STRINGS(have->mangled_before, want->mangled_before);
    UNIT_STRINGS(have->mangled_after, want->mangled_after);
    UNIT_STRINGS(have->reason, want->reason);
    UNIT_STRINGS(have->remedy, want->remedy);
  }
  catalog_free(catalog);
}

/* --- signatures --------------------------------------------------------------------------------------------------- */

#define PY CATALOG_CHANGED_PYTHON
#define OP CATALOG_CHANGED_OPERATOR
#define CXX CATALOG_CHANGED_CXX

static void what_breaks(void) {
  static const struct {
    enum catalog_changed what;
    const char *before, *after;
    enum catalog_breaks breaks;
  } cases[] = {
      {PY, "(a, b)", "(a, b, c=1)", CATALOG_BREAKS_NOTHING},
      {PY, "(a, b)", "(a, b, *, c=1)", CATALOG_BREAKS_NOTHING},
      {PY, "(a: int, b)", "(a: str, b)", CATALOG_BREAKS_NOTHING},
      {PY, "(a, b)", "(a, b, c)", CATALOG_BREAKS_CALLS},
      {PY, "(a, b)", "(a, c=1, b=2)", CATALOG_BREAKS_CALLS},
      {PY, "(a, b)", "(a)", CATALOG_BREAKS_CALLS},
      {PY, "(a, b)", "(a, z)", CATALOG_BREAKS_CALLS},
      {PY, "(a, b=1)", "(a, b)", CATALOG_BREAKS_CALLS},
      {PY, "(a, b=1)", "(a, *, b=1)", CATALOG_BREAKS_CALLS},
      {PY, "(a, *, b=1)", "(a, *, c=2)", CATALOG_BREAKS_CALLS},
      {PY, "(a, b=1)", "(a, b=2)", CATALOG_BREAKS_DEFAULT},
      {PY, "(a, b=(1, 2), c=\"x,\")", "(a, b=(1, 2), c=\"x,\", d=f(3, 4))", CATALOG_BREAKS_NOTHING},
      {PY, "(a) -> Tuple[A, B]", "(a) -> A", CATALOG_BREAKS_RESULT},
      {PY, "(a)", "(a) -> A", CATALOG_BREAKS_NOTHING},
      {OP, "f(Tensor a) -> ()", "f(Tensor(a!) a) -> ()", CATALOG_BREAKS_NOTHING},
      {OP, "f(Tensor! a) -> ()", "f(Tensor? a) -> ()", CATALOG_BREAKS_NOTHING},
      {OP, "f(Tensor? a) -> ()", "f(Tensor a) -> ()", CATALOG_BREAKS_CALLS},
      {OP, "f(int a) -> ()", "f(float a) -> ()", CATALOG_BREAKS_CALLS},
      {OP, "f(Tensor a) -> (Tensor, Tensor)", "f(Tensor a) -> ()", CATALOG_BREAKS_RESULT},
      {OP, "f(Tensor a) -> (Tensor(a!))", "f(Tensor a) -> (Tensor)", CATALOG_BREAKS_NOTHING},
      {OP, "f(int[]? a) -> ()", "f(int[]? a, int b=0) -> ()", CATALOG_BREAKS_NOTHING},
      {CXX, "void f(at::Tensor a, int64_t b)", "void f(at::Tensor x, int64_t y)", CATALOG_BREAKS_NOTHING},
      {CXX, "void f(at::Tensor a)", "void f(const at::Tensor& a)", CATALOG_BREAKS_LINK},
      {CXX, "void f(at::Tensor const& a)", "void f(at::Tensor a)", CATALOG_BREAKS_LINK},
      {CXX, "void f(at::Tensor const& a, double b)", "void f(const at::Tensor& a, const double b)",
       CATALOG_BREAKS_NOTHING},
      {CXX, "void f(at::Tensor a)", "void g(at::Tensor a)", CATALOG_BREAKS_CALLS},
      {CXX, "void f(at::Tensor a)", "void f(at::Tensor a, int64_t b = 0)", CATALOG_BREAKS_LINK},
      {CXX, "void f(at::Tensor a)", "void f(at::Tensor a, int64_t b)", CATALOG_BREAKS_CALLS},
      {CXX, "void f(at::Tensor a)", "void f(int64_t a)", CATALOG_BREAKS_CALLS},
      {CXX, "std::tuple<at::Tensor, int> f(int)", "std::tuple<at::Tensor, int> f(int, int b = 1)", CATALOG_BREAKS_LINK},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct catalog_signature before, after;
    CU_ASSERT_TRUE_FATAL(catalog_signature_read(cases[i].what, cases[i].before, &before));
    CU_ASSERT_TRUE_FATAL(catalog_signature_read(cases[i].what, cases[i].after, &after));
    enum catalog_breaks breaks = catalog_signature_breaks(cases[i].what, &before, &after);
    if (breaks != cases[i].breaks) {
      fprintf(stderr, "  %s to %s: %d, not %d\n", cases[i].before, cases[i].after, breaks, cases[i].breaks);
      CU_FAIL("another kind of change");
    }
  }
}

static void what_is_no_signature(void) {
  static const struct {
    enum catalog_changed what;
    const char *text;
  } cases[] = {{PY, ""},          {PY, "a, b"},    {PY, "(a"},         {PY, "(a, , b)"}, {PY, "(*args)"},
               {PY, "(a, **kw)"}, {PY, "(a) A"},   {OP, "f"},          {OP, "f(Tensor"}, {OP, "f(Tensor) -> ()"},
               {OP, "f() () ->"}, {CXX, "void f"}, {CXX, "void f(int"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct catalog_signature signature;
    CU_ASSERT_FALSE(catalog_signature_read(cases[i].what, cases[i].text, &signature));
  }
}

/* "3+": ** behind three arguments. "3 x y": three arguments by position, x and y by name. */
static void read_call(const char *text, struct catalog_call *call, struct catalog_slice *keywords) {
  *call = (struct catalog_call){.positional = (unsigned)(*text - '0'), .keywords = keywords, .more = text[1] == '+'};
  for (const char *at = strchr(text, ' '); at; at = strchr(at, ' ')) {
    at++;
    keywords[call->keywords_count++] = (struct catalog_slice){at, (unsigned)strcspn(at, " ")};
  }
}

static void what_fits(void) {
  static const struct {
    const char *signature, *call, *why;
  } cases[] = {
      {"(a, b, c=1)", "2", ""},
      {"(a, b, c=1)", "3", ""},
      {"(a, b, c=1)", "1 c b", ""},
      {"(a, b, c=1)", "4", "it has 4 positional arguments, and 3 are taken"},
      {"(a, b, *, c=1)", "3", "it has 3 positional arguments, and 2 are taken"},
      {"(a, b, c=1)", "2 d", "there is no argument d"},
      {"(a, b, c=1)", "2 b", "b is given by position already"},
      {"(a, b, c=1)", "1 c", "b is missing"},
      {"(a, *, c)", "1", "c is missing"},
      {"(a, b, c)", "1+", ""},
      {"(a, b, c)", "1+ d", "there is no argument d"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct catalog_signature signature;
    struct catalog_slice keywords[8];
    struct catalog_call call;
    char why[200];
    CU_ASSERT_TRUE_FATAL(catalog_signature_read(PY, cases[i].signature, &signature));
    read_call(cases[i].call, &call, keywords);
    CU_ASSERT_EQUAL(catalog_call_fits(&signature, &call, why, sizeof why), !*cases[i].why);
    UNIT_STRINGS(why, cases[i].why);
  }
}

static void what_means_the_same(void) {
  static const struct {
    const char *before, *after, *call, *why;
  } cases[] = {
      {"(a, b)", "(a, x, b)", "1 b", ""},
      {"(a, b)", "(a, x)", "2", ""}, /* a new name for b */
      {"(a, b, c)", "(a, c, d=1)", "3", "argument 2 was b and is c"},
      {"(a, b: int)", "(a, x: bool)", "2", "argument 2 was b and is x"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct catalog_signature before, after;
    struct catalog_slice keywords[8];
    struct catalog_call call;
    char why[200];
    CU_ASSERT_TRUE_FATAL(catalog_signature_read(PY, cases[i].before, &before));
    CU_ASSERT_TRUE_FATAL(catalog_signature_read(PY, cases[i].after, &after));
    read_call(cases[i].call, &call, keywords);
    CU_ASSERT_EQUAL(catalog_call_same(&before, &after, &call, why, sizeof why), !*cases[i].why);
    UNIT_STRINGS(why, cases[i].why);
  }
}

/* The words of a call's arguments: of the new form, of the old one, of neither. */
static void what_words_say(void) {
  static const struct {
    const char *words[3];
    bool same;
  } cases[] = {{{"a", "c", "True"}, true}, {{"a", "b", "c"}, false}, {{"x", "", ""}, false}, {{"a", "", "d"}, true}};
  struct catalog_signature before, after;
  CU_ASSERT_TRUE_FATAL(catalog_signature_read(PY, "(a, b, c)", &before));
  CU_ASSERT_TRUE_FATAL(catalog_signature_read(PY, "(a, c, d=1)", &after));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct catalog_slice words[3];
    char why[200];
    for (unsigned k = 0; k < 3; k++)
      words[k] = (struct catalog_slice){cases[i].words[k], (unsigned)strlen(cases[i].words[k])};
    const struct catalog_call call = {.positional = 3, .words = words};
    CU_ASSERT_EQUAL(catalog_call_same(&before, &after, &call, why, sizeof why), cases[i].same);
  }
}

static const struct unit_test tests[] = {
    {"census_is_there", census_is_there},           {"others_are_there", others_are_there},
    {"builtin_is_the_file", builtin_is_the_file},   {"what_breaks", what_breaks},
    {"what_is_no_signature", what_is_no_signature}, {"what_fits", what_fits},
    {"what_means_the_same", what_means_the_same},   {"what_words_say", what_words_say},
};
UNIT_MAIN("catalog.changes", tests)
