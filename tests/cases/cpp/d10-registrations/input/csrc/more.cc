#include <torch/library.h>

void register_gemm(torch::Library& m);
TORCH_LIBRARY_FRAGMENT(sgl_kernel, m) {
  register_gemm(m);
}
