/* A text that is all comment. */
#include "scanner/ignore.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static uint32_t line_of(const void *user, size_t offset) {
  const struct ignore_text *text = user;
  uint32_t line = 1;
  for (size_t i = 0; i < offset && i < text->size; i++)
    line += text->bytes[i] == '\n';
  return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0 || !ignore_wanted(data, size))
    return 0;
  struct scan scan = {.catalog = &catalog_builtin, .options = {.kernel = "0.4.6"}, .root = "."};
  struct result result = {0};
  uint8_t *classes = scan_alloc(NULL, size);
  memset(classes, IGNORE_COMMENT, size);
  for (size_t i = 0; i < size; i++) /* code is what stands in front of a # */
    for (size_t k = i; k < size && (i == 0 || data[i - 1] == '\n') && data[k] != '#' && data[k] != '\n'; k++)
      classes[k] = IGNORE_CODE;
  struct ignore_text text = {.bytes = data, .size = size, .classes = classes, .line = line_of, .user = &text};
  text.braces = size % 3 == 0 ? IGNORE_BRACES_PLAIN : size % 3 == 1 ? IGNORE_BRACES_COUNT : IGNORE_BRACES_END;
  rules_build(&scan);
  ignore_read(&scan, &result, &text);
  result_find(&result, 1, 1, &catalog_builtin.symbols[0], VERDICT_REPORT, EVIDENCE_AST, LEVEL_ERROR, "a use");
  ignore_covers(&result, 1, &catalog_builtin.symbols[0]);
  ignore_apply(&result);
  ignore_faults(&scan, &result, fuzz_drop, NULL);
  result_free(&result);
  rules_free(&scan);
  free(classes);
  return 0;
}
