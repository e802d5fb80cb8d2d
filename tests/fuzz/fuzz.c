#include "tests/fuzz/fuzz.h"
#include "scanner/crew.h"
#include "scanner/prefilter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct prefilter *prefilter;

static void close_prefilter(void) {
  prefilter_free(prefilter);
}

static void check_result(const struct scan *scan, const struct result *result, const uint8_t *data, size_t size) {
  uint32_t lines = 1;
  for (size_t i = 0; i < size; i++)
    lines += data[i] == '\n';
  for (size_t i = 0; i < result->findings_count; i++) {
    const struct finding *finding = &result->findings[i];
    FUZZ_HOLDS(finding->line >= 1 && finding->line <= lines && finding->column >= 1 && finding->column <= size + 1);
    FUZZ_HOLDS(finding->symbol >= scan->catalog->symbols &&
               finding->symbol < scan->catalog->symbols + scan->catalog->symbols_count && *finding->message);
  }
}

void fuzz_file(const char *path, const uint8_t *data, size_t size) {
  if (size == 0)
    return; /* such a file is not analysed */
  if (!prefilter) {
    prefilter = prefilter_new(&catalog_builtin, 1);
    atexit(close_prefilter);
  }
  uint8_t *bytes = scan_alloc(NULL, size); /* of exactly that size, so that a byte too much is seen */
  memcpy(bytes, data, size);
  struct source_file file = {.path = (char *)(uintptr_t)path,
                             .full_path = (char *)(uintptr_t)path,
                             .language = walk_language(path),
                             .bytes = bytes,
                             .first_bytes = bytes,
                             .size = size,
                             .hit = true};
  file.seen = (uint8_t)prefilter_look(prefilter, 0, bytes, size);
  /* Which options is a matter of the input too. */
  struct scan scan = {.catalog = &catalog_builtin,
                      .options = {.kernel = "0.4.6", .sglang_release = size & 1 ? "0.5.18" : NULL, .unsafe = size & 2},
                      .root = ".",
                      .files = &file,
                      .files_count = 1};
  rules_build(&scan);
  struct crew *crew = crew_new();
  python_index_plan(&scan, crew, 1);
  cxx_index_plan(&scan, crew);
  crew_finish(crew, 1);
  scan_analyse(&scan, &file, &file.result);
  check_result(&scan, &file.result, bytes, size);
  if (file.result.edits_count) {
    char message[512];
    uint8_t *new_bytes;
    size_t new_size;
    struct result after = {0};
    FUZZ_HOLDS(edit_compose(bytes, size, file.result.edits, file.result.edits_count, &new_bytes, &new_size, message,
                            sizeof message));
    file.bytes = new_bytes;
    file.size = new_size;
    scan_analyse(&scan, &file, &after);
    check_result(&scan, &after, new_bytes, new_size);
    result_free(&after);
    free(new_bytes);
  }
  result_free(&file.result);
  cxx_index_free(&scan);
  python_index_free(&scan);
  cxx_free_facts(&file);
  rules_free(&scan);
  free(bytes);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static char folder[64], *written;

static void remove_folder(void) {
  if (written)
    unlink(written);
  free(written);
  rmdir(folder);
}

const char *fuzz_folder(void) {
  if (!*folder) {
    snprintf(folder, sizeof folder, "/dev/shm/sgl-fuzz-XXXXXX");
    FUZZ_HOLDS(mkdtemp(folder));
    atexit(remove_folder);
  }
  return folder;
}

const char *fuzz_written(const char *name, const uint8_t *data, size_t size) {
  if (!written)
    written = scan_format("%s/%s", fuzz_folder(), name);
  FILE *file = fopen(written, "w");
  FUZZ_HOLDS(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
  return written;
}

void fuzz_drop(void *user, uint32_t line, const char *text) {
  (void)user;
  (void)line;
  FUZZ_HOLDS(*text);
}
