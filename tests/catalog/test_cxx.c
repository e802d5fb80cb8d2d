/* The C++ side of the catalog against a real compiler: the names that g++ gives the declared functions, and that the
 * prelude is C++ on which ordinary callers parse. The mangler is tested on forms that the catalog does not have. */
#include "tests/unit.h"

#include "catalog/catalog_private.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the mangler alone ----------------------------------------------------------------------------------------------
 */

static void forms(void) {
  static const struct {
    const char *scope, *name, *declaration, *mangled; /* by g++ 12 */
    unsigned parameters;
  } cases[] = {
      {"", "f", "void f()", "_Z1fv", 0},
      {"", "f", "int f(bool, char, short, int, long, long long)", "_Z1fbcsilx", 6},
      {"", "f", "void f(unsigned a, unsigned char b, unsigned long c, unsigned long long d)", "_Z1fjhmy", 4},
      {"", "f", "void f(float a, double b, size_t c, uint8_t d, int8_t e, uint16_t g, uintptr_t h)", "_Z1ffdmhatm", 7},
      {"", "f", "void f(void *a, const void *b, const char *const *c)", "_Z1fPvPKvPKPKc", 3},
      {"", "f", "void f(const int a, int *const b, int &&c)", "_Z1fiPiOi", 3},
      {"", "f", "void f(at::Tensor a, const at::Tensor &b, at::Tensor const &c, at::Tensor *d)",
       "_Z1fN2at6TensorERKS0_S2_PS0_", 4},
      {"", "f", "void f(at::Tensor a, at::Generator b, at::native::X c)", "_Z1fN2at6TensorENS_9GeneratorENS_6native1XE",
       3},
      {"", "f", "void f(at::native::X a, at::native::Y b, at::Tensor c)", "_Z1fN2at6native1XENS0_1YENS_6TensorE", 3},
      {"", "f", "void f(Config a, Config *b, const Config &c)", "_Z1f6ConfigPS_RKS_", 3},
      {"", "f",
       "void f(std::vector<int64_t> a, const std::vector<at::Tensor> &b, std::optional<std::vector<double>> c)",
       "_Z1fSt6vectorIlSaIlEERKS_IN2at6TensorESaIS3_EESt8optionalIS_IdSaIdEEE", 3},
      {"at", "f", "at::Tensor f(const at::Tensor &a)", "_ZN2at1fERKNS_6TensorE", 1},
      {"a::b", "f", "void f(a::b::T x, a::U y)", "_ZN1a1b1fENS0_1TENS_1UE", 2},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct catalog_cxx cxx = {.scope = cases[i].scope, .name = cases[i].name, .declaration = cases[i].declaration};
    char mangled[500] = "", error[200] = "";
    unsigned parameters = 99;
    CU_ASSERT_TRUE(catalog_mangle(&cxx, mangled, sizeof mangled, &parameters, error, sizeof error));
    UNIT_STRINGS(error, "");
    UNIT_STRINGS(mangled, cases[i].mangled);
    CU_ASSERT_EQUAL(parameters, cases[i].parameters);
  }
}

static void refused(void) {
  static const struct {
    const char *declaration, *error;
  } cases[] = {
      {"", "a type expected at ''"},
      {"void", "the declaration is not of 'f', at ''"},
      {"void g()", "the declaration is not of 'f', at 'g()'"},
      {"void f", "'(' expected at ''"},
      {"void f(int a", "',' or ')' expected at ''"},
      {"void f(int a) noexcept", "nothing expected after the parameters, at 'noexcept'"},
      {"void f(std::vector<int a)", "'>' expected at 'a)'"},
      {"void f(std::vector int)", "'<' expected at 'int)'"},
      {"void f(std::array<int, 2> a)", "the linter does not know the type 'std::array<int, 2> a)'"},
      {"void f(c10::List<int> a)", "the linter knows no templates but std::optional and std::vector, at '<int> a)'"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct catalog_cxx cxx = {.scope = "", .name = "f", .declaration = cases[i].declaration};
    char mangled[500], error[200] = "";
    unsigned parameters;
    CU_ASSERT_FALSE(catalog_mangle(&cxx, mangled, sizeof mangled, &parameters, error, sizeof error));
    UNIT_STRINGS(error, cases[i].error);
  }
}

/* More than 36 different types: the substitutions go from SZ_ to S10_. Too many, or too long, is an error. */
static void many_types(void) {
  static char declaration[20000], want[20000], mangled[20000];
  for (int count = 40; count <= 90; count += 50) {
    int length = sprintf(declaration, "void f(");
    int wanted = sprintf(want, "_Z1f");
    for (int i = 0; i < count; i++) {
      length += sprintf(declaration + length, "T%d, ", i);
      wanted += sprintf(want + wanted, "%dT%d", i < 10 ? 2 : 3, i);
    }
    sprintf(declaration + length, "T0, T36, T37, T39)");
    sprintf(want + wanted, "S_SZ_S10_S12_");
    struct catalog_cxx cxx = {.scope = "", .name = "f", .declaration = declaration};
    char error[200] = "";
    unsigned parameters;
    bool ok = catalog_mangle(&cxx, mangled, sizeof mangled, &parameters, error, sizeof error);
    CU_ASSERT_EQUAL(ok, count == 40);
    UNIT_STRINGS(error, ok ? "" : "the declaration has too many different types");
    UNIT_STRINGS(ok ? mangled : want, want);
  }
}

/* --- a real compiler ------------------------------------------------------------------------------------------------
 */

static const char callers[] =
    "namespace callers {\n"
    "void call(at::Tensor &out, const torch::Tensor &a, torch::Tensor b, const std::optional<at::Tensor> &maybe) {\n"
    "  auto x = a.view({1, 2}).to(at::kBFloat16).contiguous().t();\n"
    "  torch::Tensor y = torch::empty({a.size(0), b.size(1)}, a.options().dtype(torch::kFloat));\n"
    "  ::dsv3_router_gemm(out, x, torch::silu(b));\n"
    "  ::dsv3_fused_a_gemm(y, a.narrow(0, 1, 2), b.transpose(0, 1));\n"
    "  bmm_fp8(a, b, out, a, b, maybe.value(), 0);\n"
    "  TORCH_CHECK(a.dim() == 2 && a.scalar_type() == at::ScalarType::BFloat16, \"shape\", a.sizes());\n"
    "  const float *data = a.data_ptr<float>();\n"
    "  if (a.sizes() == b.sizes() && data && a.is_contiguous() && a.item<float>() > 0) return;\n"
    "}\n"
    "__global__ void kernel(float *p) { p[threadIdx.x + blockIdx.x * blockDim.x] = 1; }\n"
    "void launch(cudaStream_t stream) { dim3 grid(2), block(3, 4); (void)stream; (void)grid; (void)block; }\n"
    "}\n"
    "/* what a file may write itself */\n"
    "void dsv3_router_gemm(torch::Tensor &output, const torch::Tensor &mat_a, const torch::Tensor &mat_b);\n"
    "namespace at { class Tensor; }\n"
    "TORCH_LIBRARY_FRAGMENT(sgl_kernel, m) {\n"
    "  m.def(\"dsv3_router_gemm(Tensor! output, Tensor mat_a, Tensor mat_b) -> ()\");\n"
    "  m.impl(\"dsv3_router_gemm\", torch::kCUDA, &dsv3_router_gemm);\n"
    "}\n";

/* Everything the command prints; its exit status in *status. */
static char *output_of(const char *command, int *status) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size), *pipe = popen(command, "r");
  CU_ASSERT_PTR_NOT_NULL_FATAL(pipe);
  for (int c; (c = getc(pipe)) != EOF;)
    putc(c, out);
  *status = pclose(pipe);
  fclose(out);
  return text;
}

/* The prelude and the declarations of the catalog. */
static void write_prelude(FILE *out) {
  char path[300];
  size_t size;
  snprintf(path, sizeof path, "%.*s/../../catalog/prelude.h.in", (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
  char *text = catalog_read_file(path, &size);
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  fwrite(text, 1, size, out);
  for (unsigned i = 0; i < catalog_builtin.symbols_count; i++) {
    const struct catalog_cxx *cxx = &catalog_builtin.symbols[i].cxx;
    if (cxx->name[0])
      fprintf(out, cxx->scope[0] ? "namespace %s { %s; }\n" : "%s%s;\n", cxx->scope, cxx->declaration);
  }
  free(text);
}

/* Compiles what the flags say of the prelude and its callers; with flags == NULL only the functions' addresses. */
static char *compile(const char *flags, bool callers_too) {
  char folder[] = "/tmp/sgl-catalog-XXXXXX", path[100], command[600];
  CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/unit.cc", folder);
  FILE *out = fopen(path, "w");
  write_prelude(out);
  fprintf(out, "extern void *const addresses[];\nvoid *const addresses[] = {\n");
  for (unsigned i = 0; i < catalog_builtin.symbols_count; i++) {
    const struct catalog_cxx *cxx = &catalog_builtin.symbols[i].cxx;
    if (cxx->name[0])
      fprintf(out, "    reinterpret_cast<void *>(&%s::%s),\n", cxx->scope, cxx->name);
  }
  fputs("};\n", out);
  if (callers_too)
    fputs(callers, out);
  fclose(out);
  int status;
  snprintf(command, sizeof command, "g++ -std=c++17 %s -I%s -o %s/unit.o -c %s 2>&1", flags, folder, folder, path);
  char *text = output_of(command, &status);
  if (status != 0 || text[0])
    fprintf(stderr, "%s", text);
  CU_ASSERT_EQUAL(status, 0);
  UNIT_STRINGS(text, "");
  free(text);
  snprintf(command, sizeof command, "nm -u %s/unit.o; rm -r %s", folder, folder);
  text = output_of(command, &status);
  CU_ASSERT_EQUAL(status, 0);
  return text;
}

static bool have_compiler(void) {
  int status;
  free(output_of("g++ --version && nm --version", &status));
  return status == 0;
}

static void names_by_the_compiler(void) {
  if (!have_compiler()) {
    UNIT_SKIP("no g++ or nm here");
    return;
  }
  char *undefined = compile("-fpermissive", false), line[600];
  unsigned functions = 0;
  for (unsigned i = 0; i < catalog_builtin.symbols_count; i++) {
    const struct catalog_cxx *cxx = &catalog_builtin.symbols[i].cxx;
    if (!cxx->name[0])
      continue;
    snprintf(line, sizeof line, " U %s\n", cxx->mangled);
    UNIT_CONTAINS(undefined, line);
    functions++;
  }
  CU_ASSERT(functions > 70);
  free(undefined);
}

static void prelude_takes_callers(void) {
  if (!have_compiler()) {
    UNIT_SKIP("no g++ here");
    return;
  }
  free(compile("-Wall -Wextra -Wno-unused-function -Wno-unused-parameter", true));
  /* with no header at all, as on a machine that has only this project */
  free(compile("-nostdinc -nostdinc++", true));
}

static const struct unit_test tests[] = {
    {"forms", forms},
    {"refused", refused},
    {"many_types", many_types},
    {"names_by_the_compiler", names_by_the_compiler},
    {"prelude_takes_callers", prelude_takes_callers},
};
UNIT_MAIN("catalog.cxx", tests)
