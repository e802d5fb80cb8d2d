/* Requirement files: the first byte says which. */
#include "scanner/pins.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

/* run.py has the same list. */
static const char *const paths[] = {"requirements.txt", "pyproject.toml", "setup.py",   "setup.cfg", "env.yml",
                                    "uv.lock",          "Pipfile.lock",   "Dockerfile", "PKG-INFO"};

static void drop_path(void *user, const char *path) {
  (void)user;
  (void)path;
}

static void drop_line(void *user, const char *line) {
  fuzz_drop(user, 0, line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  const char *path = paths[data[0] % (sizeof paths / sizeof *paths)];
  struct pins pins = {.catalog = &catalog_builtin};
  struct scan scan = {.catalog = &catalog_builtin, .options = {.kernel = "0.4.6"}, .root = "."};
  enum pins_kind kind = pins_kind(path);
  if (kind)
    pins_read(&pins, kind, path, data + 1, size - 1, drop_path, NULL);
  const struct pin *kernel = pins_kernel(&pins), *sglang = pins_sglang(&pins);
  FUZZ_HOLDS(!kernel || catalog_version_valid(kernel->kernel));
  FUZZ_HOLDS(!sglang || catalog_version_valid(sglang->release));
  pins_contradictions(&pins, &scan, 1, drop_line, NULL);
  pins_free(&pins);
  return 0;
}
