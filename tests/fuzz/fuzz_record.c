/* RECORD of an installed distribution. */
#include "scanner/dist_info.h"
#include "scanner/scanner.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct dist_info_record record;
  char *text = scan_alloc(NULL, size + 1);
  memcpy(text, data, size);
  text[size] = '\0';
  dist_info_split_record(&record, text);
  FUZZ_HOLDS(record.rows_count <= size);
  for (size_t i = 0; i < record.rows_count; i++) {
    const struct dist_info_row *row = &record.rows[i];
    FUZZ_HOLDS(*row->path && row->path + strlen(row->path) <= text + size);
    FUZZ_HOLDS(strlen(row->hash) <= size);
    dist_info_in_package(row->path, "sgl_kernel");
  }
  dist_info_free_record(&record);
  return 0;
}
