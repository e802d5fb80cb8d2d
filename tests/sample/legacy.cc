// A process without torch that calls the old C++ symbol all the same: the call resolves, warns and throws the advice.
#include <cstdio>
#include <exception>

namespace at {
class Tensor;
}
extern "C" void legacy_router(at::Tensor *output, const at::Tensor *hidden_states, const at::Tensor *router_weights);

int main() {
  try {
    legacy_router(nullptr, nullptr, nullptr);
  } catch (const std::exception &e) {
    std::printf("caught: %s\n", e.what());
    return 0;
  }
  std::printf("the call returned, though there is no torch here\n");
  return 1;
}
