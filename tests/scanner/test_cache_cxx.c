/* Which C++ files a second scan analyses again: those that asked for what has changed, and no others. */
#include "scanner/scanner.h"
#include "tests/unit.h"

#include <stdlib.h>
#include <unistd.h>

#define FILES                                                                                                          \
  "cat > common.h <<E\nint common(int);\nE\n"                                                                          \
  "cat > middle.h <<E\n#include \"common.h\"\nE\n"                                                                     \
  "cat > other.h <<E\n#define UNUSED(x) x\nE\n"                                                                        \
  "cat > near.cc <<E\n#include \"common.h\"\n$DECLARE\n$CALL\nE\n"                                                     \
  "cat > far.cc <<E\n#include \"middle.h\"\n$DECLARE\n$CALL\nE\n"                                                      \
  "cat > alone.cc <<E\n$DECLARE\n$CALL\nE\n"                                                                           \
  "cat > macro.cc <<E\n$DECLARE\nvoid g(T& o, T a) { RUN(dsv3_router_gemm(o, a, a)); }\nE\n"                           \
  "cat > open.cc <<E\n$DECLARE\ntemplate <class X> void h(X x) { dsv3_router_gemm(x, x, x); }\nE\n"                    \
  "cat > part.h <<E\n$CALL\nE\n"                                                                                       \
  "cat > register.cc <<E\nvoid add(torch::Library& m) { m.impl(\"dsv3_router_gemm\", f); }\nE\n"                       \
  "cat > library.cc <<E\nTORCH_LIBRARY(sgl_kernel, m) { none(); }\nE\n"                                                \
  "cat > text.cc <<E\n// dsv3_router_gemm\nE\n"                                                                        \
  "cat > define.cc <<E\nvoid f() {}\n// awq_dequantize\nE\n"

static char folder[64], options[16], message[512];

static void shell(const char *script) {
  char *command =
      scan_format("cd %s/tree && T=at::Tensor && DECLARE='#include <ATen/ATen.h>\nusing T = at::Tensor;\nvoid "
                  "dsv3_router_gemm(at::Tensor&, const at::Tensor&, const at::Tensor&);' && "
                  "CALL='void f(at::Tensor& o, at::Tensor a) { dsv3_router_gemm(o, a, a); }' && { %s\n}",
                  folder, script);
  if (system(command) != 0) {
    fprintf(stderr, "failed: %s\n", command);
    abort();
  }
  free(command);
}

static void open_folder(void) {
  strcpy(folder, "/tmp/test_cache.XXXXXX");
  if (!mkdtemp(folder))
    abort();
  char *tree = scan_format("mkdir %s/tree", folder);
  if (system(tree) != 0)
    abort();
  free(tree);
  setenv("XDG_CACHE_HOME", folder, 1);
  strcpy(options, "0.4.6");
  shell("mkdir plain && (cd plain && for i in $(seq 200); do : > $i.txt; done)\n" FILES); /* a small tree gets none */
}

static void close_folder(void) {
  shell("cd .. && rm -rf \"$PWD\"");
}

/* The C++ files with a hit that a scan analyses, as "a.cc b.cc". */
static char *analysed(void) {
  char *root = scan_format("%s/tree", folder), *text = scan_format("%s", "");
  struct scan scan = {.catalog = &catalog_builtin, .root = root, .use_cache = true};
  if (!scan_walk(&scan, NULL, 0, 2, false, message, sizeof message))
    abort();
  scan.options.kernel = options;
  scan_run(&scan, 2, false);
  for (size_t i = 0; i < scan.files_count; i++)
    if (scan.files[i].language == LANGUAGE_CXX && scan.files[i].hit && !scan.files[i].cached) {
      char *longer = scan_format("%s%s%s", text, *text ? " " : "", scan.files[i].path);
      free(text);
      text = longer;
    }
  scan_close(&scan);
  free(root);
  return text;
}

static void check(const char *script, const char *want) {
  shell(script);
  char *have = analysed();
  UNIT_STRINGS(have, want);
  if (strcmp(have, want) != 0)
    fprintf(stderr, "  after: %s\n", script);
  free(have);
}

#define ALL "alone.cc define.cc far.cc library.cc macro.cc near.cc open.cc part.h register.cc text.cc"

static void content_and_paths(void) {
  open_folder();
  check(":", ALL);
  check(":", "");
  check("echo 'int more(int);' >> other.h", "");
  check("echo 'int more(int);' >> common.h", "far.cc near.cc");
  check("echo 'int more(int);' >> middle.h", "far.cc");
  check("echo 'int more(int);' >> near.cc", "near.cc");
  check("touch common.h near.cc", "");
  check("echo > new.h", "");
  check("mkdir a && echo 'int more(int);' > a/common.h", "far.cc near.cc"); /* another one with that name */
  check("mv a b", "far.cc near.cc");
  check("rm -r b", "far.cc near.cc");
  check("rm common.h", "far.cc near.cc");
  check("echo 'int common(int);' > common.h", "far.cc near.cc");
  check(": > common.h", "far.cc near.cc");
  check("printf '\\377\\376x' > common.h", "far.cc near.cc"); /* what looks like UTF-16 is no source, but no empty file */
  check("rm new.h text.cc", "");
  check("sed -i 's/^void f.*//' near.cc", "near.cc");
  close_folder();
}

/* A header of which nobody knows where its names come from is read where it is included. */
static void includers(void) {
  open_folder();
  check(":", ALL);
  check("printf '%s\\n' \"$DECLARE\" '#include \"part.h\"' > user.cc", "part.h user.cc");
  check("echo 'int more(int);' >> user.cc", "part.h user.cc");
  check("echo '#include \"nowhere.h\"' >> other.h", "");
  check("sed -i 's/.*part.h.*//' user.cc", "part.h user.cc");
  check("echo 'int more(int);' >> user.cc", "user.cc");
  check("echo '// #include \"part.h\"' >> other.h", "part.h"); /* read roughly */
  close_folder();
}

static void macros(void) {
  open_folder();
  check(":", ALL);
  check("echo '#define RUN(x) x' >> other.h", "macro.cc");
  check("echo '#define RAN(x) x' >> other.h", "");
  check("sed -i 's/define RUN(x) x/define RUN(x) (x)/' other.h", "");
  check("sed -i 's/define RUN(x) (x)/define RUN(x) x##x/' other.h", "macro.cc");
  check("cp other.h third.h", "macro.cc");                               /* one more that has it */
  check("(echo '/*'; cat other.h) > new && mv new other.h", "macro.cc"); /* it is a comment now, third.h has it still */
  check("rm third.h", "macro.cc");
  check("printf '%%:define RUN(x) x\\n' > other.h", "macro.cc");
  check("printf '#define \\\\\\n RUN(x) x\\n' > other.h", "");
  check("echo > other.h", "macro.cc");
  check("echo '#define dsv3_router_gemm other' > other.h", "alone.cc far.cc macro.cc near.cc open.cc other.h part.h");
  check("echo '#define dsv3_router_gemm another' > other.h", "other.h");
  check("echo > other.h", "alone.cc far.cc macro.cc near.cc open.cc part.h");
  close_folder();
}

static void registrations(void) {
  open_folder();
  check(":", ALL);
  check("sed -i 's/none()/add(m)/' library.cc", "library.cc register.cc");
  check("sed -i 's/^/ /' library.cc", "library.cc");
  check("sed -i 's/sgl_kernel/other/' library.cc", "register.cc"); /* without a hit now */
  close_folder();
}

/* What a file defines is known only when it was looked at; also of one that defines no longer. */
static void definitions(void) {
  open_folder();
  static const char callers[] = "alone.cc define.cc far.cc macro.cc near.cc open.cc part.h";
  check(":", ALL);
  check("printf '%s\\n' \"$DECLARE\" 'void dsv3_router_gemm(T& o, const T& a, const T& b) {}' > define.cc", callers);
  check("echo 'int more(int);' >> define.cc", "define.cc");
  check("(echo '#include \"common.h\"'; cat define.cc) > new && mv new define.cc", "define.cc");
  check("echo 'namespace at {' >> common.h", "alone.cc define.cc far.cc macro.cc near.cc open.cc part.h");
  check("echo '}' >> common.h", "alone.cc define.cc far.cc macro.cc near.cc open.cc part.h");
  check("rm define.cc", "alone.cc far.cc macro.cc near.cc open.cc part.h");
  check("echo 'struct S { friend void dsv3_router_gemm(S&, S&, S&) {} };' > define.cc", "define.cc open.cc");
  close_folder();
}

/* Comments that accept findings depend on the date; what else is asked of such a file counts. */
static void not_kept(void) {
  open_folder();
  check("echo '// sgl-migrate: ignore' >> far.cc", ALL);
  check(":", "far.cc");
  check("echo 'int more(int);' >> common.h", "far.cc near.cc");
  check("printf '%s\\n' \"$DECLARE\" 'void dsv3_router_gemm(T& o, const T& a, const T& b) {}' "
        "'// sgl-migrate: ignore' > define.cc",
        "alone.cc define.cc far.cc macro.cc near.cc open.cc part.h");
  check(":", "define.cc far.cc");
  check("rm define.cc", "alone.cc far.cc macro.cc near.cc open.cc part.h");
  close_folder();
}

static void other_options(void) {
  open_folder();
  check(":", ALL);
  strcpy(options, "0.4.5");
  check(":", ALL);
  check(":", "");
  check("for i in $(seq 100); do echo \"int x$i;\" > many$i.h; done", ALL); /* another branch */
  check("echo 'int more(int);' >> common.h", "far.cc near.cc");
  close_folder();
}

static void databases(void) {
  open_folder();
  shell("mkdir build inc && echo 'int forced(int);' > force.h\n"
        "cat > write.sh <<'E'\n"
        "for f in $1; do echo \"{\\\"directory\\\": \\\"$PWD\\\", \\\"file\\\": \\\"$f\\\", \\\"command\\\": \\\"cc $2 "
        "-c $f\\\"}\"; done |"
        " paste -sd, | sed 's/.*/[&]/' > build/compile_commands.json\nE\n");
  static const char users[] = "alone.cc far.cc macro.cc near.cc open.cc part.h"; /* whose names need to be judged */
  check(":", ALL);
  check("sh write.sh near.cc -DX", users); /* there was none */
  check(":", "");
  check("sh write.sh near.cc -DY", "near.cc");
  check("sh write.sh 'near.cc far.cc' -DY", "far.cc");
  check("sh write.sh 'near.cc library.cc far.cc' -DY", ""); /* nothing is asked of it */
  check("sh write.sh 'near.cc far.cc' '-DY -include force.h -Iinc'", "far.cc near.cc");
  check("echo 'int forced2(int);' >> force.h", "far.cc near.cc");
  check("echo 'int inc(int);' > inc/common.h", "far.cc near.cc");
  check("echo 'int inc2(int);' >> inc/common.h", "");      /* the files have another one beside them */
  check("echo '#include \"part.h\"' > user.cc", "part.h"); /* without a hit itself */
  check("sh write.sh 'near.cc user.cc far.cc' -DY", "far.cc near.cc part.h");
  check("echo -DZ > flags && sh write.sh near.cc @$PWD/flags", "far.cc near.cc part.h");
  check("echo -DZZ > flags", "near.cc");
  check("echo '{' > build/compile_commands.json", "near.cc");
  check("sh write.sh alone.cc -DX", "alone.cc near.cc");
  check("rm -r build", "alone.cc");
  check(":", "");
  close_folder();
}

static const struct unit_test tests[] = {
    {"content_and_paths", content_and_paths}, {"includers", includers},     {"macros", macros},
    {"registrations", registrations},         {"definitions", definitions}, {"not_kept", not_kept},
    {"other_options", other_options},         {"databases", databases},
};
UNIT_MAIN("cache_cxx", tests)
