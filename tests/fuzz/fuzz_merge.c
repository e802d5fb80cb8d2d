#include "scanner/merge.h"
#include "tests/fuzz/fuzz.h"

static void say(const char *line) {
  fuzz_drop(NULL, 0, line);
}

/* The log with itself, as two logs. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char message[512];
  struct merge *merge = merge_new();
  bool good = true;
  for (int i = 0; i < 2 && good; i++)
    good = merge_add(merge, i ? "b.sarif" : "a.sarif", (const char *)data, size, say, message, sizeof message);
  if (good) {
    int status;
    json_decref(merge_finish(merge, say, &status));
  } else {
    fuzz_drop(NULL, 0, message);
  }
  merge_free(merge);
  return 0;
}
