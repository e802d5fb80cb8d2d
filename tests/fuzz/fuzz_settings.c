#include "scanner/settings.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct settings settings;
  char message[512];
  fuzz_written(SETTINGS_NAME, data, size);
  if (settings_open(&settings, fuzz_folder(), message, sizeof message)) {
    settings_exclude(&settings, "a.py");
    settings_exclude(&settings, "src/third_party/b.cu");
  } else {
    fuzz_drop(NULL, 0, message);
  }
  settings_close(&settings);
  return 0;
}
