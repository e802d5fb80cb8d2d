/* Build files, documents, scripts, patches: the first byte says which. */
#include "tests/fuzz/fuzz.h"

/* run.py has the same list. */
static const char *const paths[] = {
    "CMakeLists.txt", "Makefile",   "BUILD.bazel",   "meson.build", "setup.py", "a.md", "a.rst",
    "a.sh",           "Dockerfile", ".github/a.yml", "a.patch",     "a.toml",   "a.go", "notes",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size)
    fuzz_file(paths[data[0] % (sizeof paths / sizeof *paths)], data + 1, size - 1);
  return 0;
}
