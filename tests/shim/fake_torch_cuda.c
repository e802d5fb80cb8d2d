/* A libtorch_cuda.so: torch's current stream. The test hands over the state of its libtorch_cpu.so. */
#include "tests/shim/fake_torch.h"

void fake_cuda_use(struct fake_state *state);
int32_t aoti_torch_get_current_cuda_stream(int32_t device_index, void **stream);

static struct fake_state *shared;

__attribute__((visibility("default"))) void fake_cuda_use(struct fake_state *state) {
  shared = state;
}

__attribute__((visibility("default"))) int32_t aoti_torch_get_current_cuda_stream(int32_t device_index, void **stream) {
  shared->streams_asked++;
  shared->stream_device = device_index;
  *stream = (void *)0x5;
  return shared->stream_fails;
}
