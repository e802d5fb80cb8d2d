/* scanner/walk.c: which files are listed, once, under which path, and what is said of the rest. */
#include "scanner/walk.h"
#include "tests/unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], message[512];

static void shell(const char *script) {
  char *command = scan_format("cd %s && { %s; } >/dev/null 2>&1", folder, script);
  if (system(command) != 0) {
    fprintf(stderr, "failed: %s\n", command);
    abort();
  }
  free(command);
}

static void open_folder(const char *script) {
  strcpy(folder, "/tmp/test_walk.XXXXXX");
  if (!mkdtemp(folder))
    abort();
  shell(script);
}

static void close_folder(void) {
  shell("chmod -R u+rwx .; rm -rf \"$PWD\"");
}

/* The walk below folder/root as "path path | note(reason) ... | ignored". */
static char *walk_text(const char *root) {
  char *full = scan_format("%s/%s", folder, root);
  struct scan scan = {.catalog = &catalog_builtin, .root = full};
  char *text = scan_format("%s", "");
  bool there = walk_root(&scan, 3, message, sizeof message);
  if (!there) {
    free(text);
    text = NULL;
  } else {
    for (size_t i = 0; i < scan.files_count; i++) {
      char *longer = scan_format("%s%s ", text, scan.files[i].path);
      free(text);
      text = longer;
    }
    for (size_t i = 0; i < scan.notes_count; i++) {
      char *longer = scan_format("%s%s%s(%s) ", text, i ? "" : "| ", scan.notes[i].path, scan.notes[i].reason);
      free(text);
      text = longer;
    }
    if (scan.ignored_count) {
      char *longer = scan_format("%s| %zu ", text, scan.ignored_count);
      free(text);
      text = longer;
    }
  }
  scan_close(&scan);
  free(full);
  return text;
}

static void check_walk(const char *root, const char *want) {
  char *have = walk_text(root);
  UNIT_STRINGS(have, want);
  free(have);
}

static void sorted_by_path(void) {
  open_folder("mkdir -p a/b a-b && touch a/z.py a/b/y.py a-b/x.py B.py a.py");
  check_walk(".", "B.py a-b/x.py a.py a/b/y.py a/z.py ");
  check_walk("a", "b/y.py z.py ");
  check_walk("a//", "b/y.py z.py ");
  check_walk("a/../a.py", "a.py ");
  close_folder();
}

static void missing_root(void) {
  open_folder("mkfifo pipe");
  CU_ASSERT_PTR_NULL(walk_text("nowhere"));
  UNIT_CONTAINS(message, "nowhere: No such file or directory");
  CU_ASSERT_PTR_NULL(walk_text("pipe"));
  UNIT_CONTAINS(message, "neither a folder nor a regular file");
  close_folder();
}

static void links(void) {
  open_folder("mkdir -p t/src/detail t/include other/deep && touch t/src/detail/a.h other/b.h other/deep/c.h &&"
              "ln -s ../src/detail/a.h t/include/a.h && ln -s ../../other/b.h t/include/b.h &&"
              "ln -s ../src/detail/a.h t/include/a2.h && ln -s ../other/deep t/deep && ln -s .. t/src/up &&"
              "ln -s nothing t/dangling && ln -s loop t/loop && ln -s src t/source && mkfifo t/pipe");
  static const char want[] =
      "src/detail/a.h | dangling(link to nothing) deep(link to a folder outside; name that folder on the command line "
      "to include it) include/b.h(link to a file outside; name that file on the command line to include it) loop(link "
      "that leads to itself) pipe(named pipe) ";
  check_walk("t", want);
  shell("ln -s t again");
  check_walk("again", want);
  check_walk("t/include/b.h", "b.h ");
  close_folder();
}

static void left_out(void) {
  open_folder("mkdir -p .venv env node_modules/x __pycache__ out out2 build/lib.linux src/build && touch .venv/a.py "
              "env/pyvenv.cfg env/b.py node_modules/x/c.py __pycache__/d.py out/CMakeCache.txt out/e.cc "
              "out2/CMakeCache.txt out2/CMakeLists.txt out2/f.cc build/lib.linux/g.py src/build/h.py");
  check_walk(".", "out2/CMakeCache.txt out2/CMakeLists.txt out2/f.cc src/build/h.py | .venv(virtual environment) "
                  "build(build output) env(virtual environment) node_modules(installed "
                  "packages) out(build output) ");
  check_walk("env", "b.py pyvenv.cfg ");
  check_walk("build", "lib.linux/g.py ");
  close_folder();
}

static void git_ignore_rules(void) {
  open_folder("git init -q && printf '*.gen.py\\n/out/\\nkeep/\\n' > .gitignore && mkdir -p out keep sub && touch a.py "
              "b.gen.py tracked.gen.py out/c.py keep/d.py keep/e.py sub/f.gen.py && "
              "git add -f tracked.gen.py keep/d.py");
  check_walk(".", ".gitignore a.py keep/d.py tracked.gen.py | 4 ");
  check_walk("sub", "| 1 ");
  check_walk("out", "c.py "); /* an ignored folder that is named is meant */
  close_folder();
}

/* The rules of the outer repository end where another one begins. */
static void nested_repository(void) {
  open_folder(
      "git init -q && printf '*.x.py\\n' > .gitignore && mkdir inner && touch a.x.py && cd inner && git init -q &&"
      "printf 'b.py\\n' > .gitignore && touch a.x.py b.py");
  check_walk(".", ".gitignore inner/.gitignore inner/a.x.py | 2 ");
  close_folder();
}

static void unreadable_folder(void) {
  open_folder("chmod 755 . && mkdir shut && touch a.py shut/b.py && chmod 0 shut");
  bool root = geteuid() == 0; /* root reads every folder */
  if (root && seteuid(65534) != 0)
    abort();
  char *have = walk_text("."), *shut = walk_text("shut");
  if (root && seteuid(0) != 0)
    abort();
  UNIT_STRINGS(have, "a.py | shut(cannot be read: Permission denied) ");
  CU_ASSERT_PTR_NULL(shut);
  UNIT_CONTAINS(message, "shut: Permission denied");
  free(have);
  free(shut);
  close_folder();
}

static void languages(void) {
  static const struct {
    const char *path;
    enum language language;
  } rows[] = {
      {"a.py", LANGUAGE_PYTHON},        {"a.PYI", LANGUAGE_PYTHON}, {"a.pyw", LANGUAGE_PYTHON},
      {"x/a.ipynb", LANGUAGE_NOTEBOOK}, {"a.c", LANGUAGE_CXX},      {"a.C", LANGUAGE_CXX},
      {"a.cuh", LANGUAGE_CXX},          {"a.mu", LANGUAGE_CXX},     {"a.h++", LANGUAGE_CXX},
      {"a.inl", LANGUAGE_CXX},          {"a.hip", LANGUAGE_CXX},    {"Makefile", LANGUAGE_TEXT},
      {".py", LANGUAGE_TEXT},           {"a.py.in", LANGUAGE_TEXT}, {"c.py/a", LANGUAGE_TEXT},
      {"a.json", LANGUAGE_NONE},        {"a.tsv", LANGUAGE_NONE},   {"lib.so", LANGUAGE_NONE},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    CU_ASSERT_EQUAL(walk_language(rows[i].path), rows[i].language);
    if (walk_language(rows[i].path) != rows[i].language)
      fprintf(stderr, "  %s\n", rows[i].path);
  }
}

static const struct unit_test tests[] = {
    {"sorted_by_path", sorted_by_path},
    {"missing_root", missing_root},
    {"links", links},
    {"left_out", left_out},
    {"git_ignore_rules", git_ignore_rules},
    {"nested_repository", nested_repository},
    {"unreadable_folder", unreadable_folder},
    {"languages", languages},
};
UNIT_MAIN("walk", tests)
