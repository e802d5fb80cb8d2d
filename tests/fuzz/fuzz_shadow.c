/* The file of a shadow's mismatch: what is taken can be computed again, as replay does. */
#include "shim/host.h"
#include "shim/shadow.h"
#include "shim/shadow_file.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct shadow_record record;
  char message[512] = "";
  if (!shadow_load(fuzz_written("x.shadow", data, size), &record, message, sizeof message)) {
    fuzz_drop(NULL, 0, message);
    return 0;
  }
  int output = serve_output(record.kernel);
  const sgl_jit_tensor *ours = &record.tensors[output];
  size_t bytes = host_bytes(ours), count = bytes / host_element_bytes(ours->dtype);
  FUZZ_HOLDS(bytes <= size && strlen(record.other_name) < sizeof record.other_name);
  sgl_jit_tensor tensors[SERVE_TENSORS];
  memcpy(tensors, record.tensors, sizeof tensors);
  void *exact = host_memory(bytes);
  FUZZ_HOLDS(exact);
  tensors[output].data = exact;
  if (host_reference(record.kernel, tensors, NULL, message, sizeof message) == SGL_JIT_OK)
    FUZZ_HOLDS(!(shadow_error(ours->data, exact, ours->dtype, count) < 0) &&
               !(shadow_error(record.other, exact, ours->dtype, count) < 0));
  else
    fuzz_drop(NULL, 0, message);
  free(exact);
  shadow_record_free(&record);
  return 0;
}
