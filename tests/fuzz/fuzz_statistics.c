/* Statistics of processes, as report, gate and `sgl-jit warm` read them: what is taken adds up. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tool_input.h"

#include "compat_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char null[] = "/dev/null";
  char *paths[] = {null};
  bool good;
  take_input(data, size);
  json_t *tree = tool_stats(paths, 1, &good), *symbols = json_object_get(tree, "symbols"), *symbol;
  json_int_t processes = json_integer_value(json_object_get(tree, "processes"));
  const char *id;
  FUZZ_HOLDS(processes == 0 || processes == 1);
  json_object_foreach(symbols, id, symbol) {
    json_int_t calls = json_integer_value(json_object_get(symbol, "calls")), sum = 0;
    size_t i;
    json_t *caller;
    json_array_foreach(json_object_get(symbol, "callers"), i, caller) {
      sum += json_integer_value(json_object_get(caller, "calls"));
    }
    FUZZ_HOLDS(processes == 1 && calls >= 0 && sum == calls);
    FUZZ_HOLDS(json_integer_value(json_object_get(symbol, "processes")) == 1);
  }
  FUZZ_HOLDS(json_array_size(json_object_get(tree, "unused")) <= compat_symbols_count);
  json_decref(tree);
  return 0;
}
