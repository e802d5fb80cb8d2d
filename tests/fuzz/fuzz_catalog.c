#include "tests/fuzz/fuzz.h"

#include <string.h>

static void drop(void *user, const char *line) {
  fuzz_drop(user, 0, line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char message[512] = "";
  const char *path = fuzz_written("catalog.yaml", data, size);
  struct catalog *catalog = catalog_load(path, message, sizeof message);
  if (catalog)
    catalog_lint(catalog, path, drop, NULL);
  else
    fuzz_drop(NULL, 0, message);
  catalog_free(catalog);
  return 0;
}
