#include "glue.h"
TORCH_LIBRARY_FRAGMENT(SPACE, m) {
  m.def("dsv3_router_gemm(Tensor o, Tensor a, Tensor b) -> ()");
}
