// Torch 2.8: the oldest that the kernel wheels take.
#define FAKE_TORCH 28
#include "tests/shim/fake_torch.cc"
