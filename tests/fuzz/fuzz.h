/* libFuzzer targets: fuzz_NAME.c, one for each parser of foreign input. tests/fuzz/run.py makes their seeds and runs
 * them
 * (`make check-long`). A target frees all that it makes, since leaks are looked for after each input. */
#ifndef SGL_TESTS_FUZZ_H
#define SGL_TESTS_FUZZ_H

#include "scanner/scanner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold after any input. */
#define FUZZ_HOLDS(condition)                                                                                          \
  do {                                                                                                                 \
    if (!(condition))                                                                                                  \
      __builtin_trap();                                                                                                \
  } while (0)

/* fuzz.c: a scan of a tree in memory with this one file: the findings lie in it, its edits fit together, and what they
 * make of it can be analysed too. */
void fuzz_file(const char *path, const uint8_t *data, size_t size);
/* The path of a file with these bytes, in a folder of the process. */
const char *fuzz_written(const char *name, const uint8_t *data, size_t size);
const char *fuzz_folder(void);
/* For callbacks that give a line; the commands print it through report_plain. */
void fuzz_drop(void *user, uint32_t line, const char *text);

#endif
