/* The log of a scan, as gate reads it. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tool_input.h"

#include "compat_table.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  take_input(data, size);
  struct tool_scan scan = {0};
  if (tool_scan_read("found.sarif", &scan)) {
    FUZZ_HOLDS(json_array_size(scan.runs) > 0 && scan.files >= 0 && scan.release <= compat_releases_count);
    FUZZ_HOLDS(memchr(scan.left_out, '\0', sizeof scan.left_out));
    for (unsigned i = 0; i < compat_symbols_count; i++) {
      char first[64];
      FUZZ_HOLDS(tool_scan_uses(&scan, compat_symbols[i].id, first, sizeof first) == 0 || *first);
      tool_scan_tells_of(&scan, i);
    }
  }
  json_decref(scan.runs);
  return 0;
}
