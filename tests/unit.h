/* One CUnit program a file: a table of tests and UNIT_MAIN. Prints each failed assertion with its place, and as the
 * last line "SUITE: N passed, N failed[, N skipped]", counted in tests. A test that cannot run here calls
 * UNIT_SKIP(reason) and returns; it is then counted as skipped, never as passed. Arguments name the tests to run. */
#ifndef SGL_TESTS_UNIT_H
#define SGL_TESTS_UNIT_H

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct unit_test {
  const char *name;
  void (*run)(void);
};

static char unit_skip_reason[256];
#define UNIT_SKIP(...) ((void)snprintf(unit_skip_reason, sizeof unit_skip_reason, __VA_ARGS__))

/* A failed assertion that shows both sides. */
__attribute__((unused)) static bool unit_equal_strings(const char *have, const char *want) {
  if (have && want && strcmp(have, want) == 0)
    return true;
  fprintf(stderr, "  have: %s\n  want: %s\n", have ? have : "(null)", want ? want : "(null)");
  return false;
}
#define UNIT_STRINGS(have, want) CU_ASSERT(unit_equal_strings((have), (want)))
/* Passes when `have` contains `part`. */
#define UNIT_CONTAINS(have, part)                                                                                      \
  do {                                                                                                                 \
    const char *unit_have = (have);                                                                                    \
    bool unit_found = unit_have && strstr(unit_have, (part));                                                          \
    if (!unit_found)                                                                                                   \
      fprintf(stderr, "  have: %s\n  want within: %s\n", unit_have ? unit_have : "(null)", (part));                    \
    CU_ASSERT(unit_found);                                                                                             \
  } while (0)

static int unit_main(const char *suite, const struct unit_test *tests, size_t count, int argc, char **argv) {
  unsigned passed = 0, failed = 0, skipped = 0;
  if (CU_initialize_registry() != CUE_SUCCESS)
    return 2;
  CU_pSuite s = CU_add_suite(suite, NULL, NULL);
  for (size_t i = 0; i < count; i++) {
    bool wanted = argc < 2;
    for (int a = 1; a < argc; a++)
      wanted = wanted || strcmp(argv[a], tests[i].name) == 0;
    if (!wanted)
      continue;
    CU_pTest t = CU_add_test(s, tests[i].name, tests[i].run);
    unit_skip_reason[0] = '\0';
    CU_run_test(s, t);
    if (CU_get_number_of_failures()) {
      failed++;
      printf("FAIL %s.%s\n", suite, tests[i].name);
      for (CU_pFailureRecord f = CU_get_failure_list(); f; f = f->pNext)
        printf("     %s:%u: %s\n", f->strFileName, f->uiLineNumber, f->strCondition);
    } else if (unit_skip_reason[0]) {
      skipped++;
      printf("skip %s.%s: %s\n", suite, tests[i].name, unit_skip_reason);
    } else if (CU_get_number_of_asserts() == 0) {
      failed++; /* a test that asserts nothing proves nothing */
      printf("FAIL %s.%s\n     no assertion was made\n", suite, tests[i].name);
    } else {
      passed++;
    }
    fflush(stdout);
  }
  CU_cleanup_registry();
  if (skipped)
    printf("%s: %u passed, %u failed, %u skipped\n", suite, passed, failed, skipped);
  else
    printf("%s: %u passed, %u failed\n", suite, passed, failed);
  return failed || (!passed && !skipped) ? 1 : 0;
}

#define UNIT_MAIN(suite, tests)                                                                                        \
  int main(int argc, char **argv) {                                                                                    \
    return unit_main((suite), (tests), sizeof(tests) / sizeof((tests)[0]), argc, argv);                                \
  }

#endif
