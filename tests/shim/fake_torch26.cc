// Torch 2.6: tensors can be read, operators cannot be registered from C.
#define FAKE_TORCH 26
#include "tests/shim/fake_torch.cc"
