// A libtorch_cuda: torch's current stream, on a torch that has no CUDA part.
#include <cstdint>

extern "C" int32_t aoti_torch_get_current_cuda_stream(int32_t device_index, void **stream) {
  *stream = reinterpret_cast<void *>(static_cast<intptr_t>(device_index) + 5);
  return device_index < 0;
}
