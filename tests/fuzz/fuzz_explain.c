/* A pasted message. */
#include "scanner/explain.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = scan_format("%.*s", (int)size, (const char *)data), *plain = explain_plain(text);
  struct explanation explanation;
  explain(&catalog_builtin, plain, &explanation);
  FUZZ_HOLDS(strlen(plain) <= strlen(text));
  explain_free(&explanation);
  free(plain);
  free(text);
  return 0;
}
