#include "scanner/crew.h"
#include "scanner/cxx_database.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint8_t text[] = "int a;\n";
  struct source_file files[3] = {0};
  static const char *const paths[] = {"a.cu", "b.h", "src/c.cc"};
  for (size_t i = 0; i < 3; i++)
    files[i] = (struct source_file){.path = (char *)(uintptr_t)paths[i],
                                    .full_path = (char *)(uintptr_t)paths[i],
                                    .language = LANGUAGE_CXX,
                                    .bytes = text,
                                    .first_bytes = text,
                                    .size = sizeof text - 1,
                                    .hit = true};
  fuzz_written("compile_commands.json", data, size);
  struct scan scan = {.catalog = &catalog_builtin,
                      .options = {.kernel = "0.4.6"},
                      .root = ".",
                      .real_root = scan_format("%s", fuzz_folder()),
                      .files = files,
                      .files_count = 3};
  rules_build(&scan);
  struct crew *crew = crew_new();
  cxx_index_plan(&scan, crew); /* reads the database */
  crew_finish(crew, 1);
  for (size_t i = 0; i < 3; i++) {
    struct result result = {0};
    cxx_analyse(&scan, &files[i], &result);
    result_free(&result);
  }
  for (size_t i = 0; i < 3; i++)
    cxx_free_facts(&files[i]);
  cxx_index_free(&scan);
  rules_free(&scan);
  for (size_t i = 0; i < scan.notes_count; i++) {
    fuzz_drop(NULL, 0, scan.notes[i].reason);
    free(scan.notes[i].path);
    free(scan.notes[i].reason);
  }
  free(scan.notes);
  free(scan.real_root);
  return 0;
}
