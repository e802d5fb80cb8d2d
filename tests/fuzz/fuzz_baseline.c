#include "scanner/baseline.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct baseline baseline = {0};
  struct scan scan = {.catalog = &catalog_builtin, .options = {.kernel = "0.4.6"}, .root = "."};
  if (baseline_parse(&baseline, "accepted", (const char *)data, size, fuzz_drop, NULL) == 0) {
    baseline_match(&baseline, &scan);
    for (size_t i = 0; i < baseline.count; i++)
      baseline_is_stale(&baseline.entries[i], &scan);
  }
  baseline_free(&baseline);
  return 0;
}
