// Torch 2.3: too old, its C functions cannot throw.
#define FAKE_TORCH 23
#include "tests/shim/fake_torch.cc"
