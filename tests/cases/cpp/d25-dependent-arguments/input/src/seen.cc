#include "sgl_kernel_ops.h"

namespace own {
struct Mat {
  friend void dsv3_fused_a_gemm(Mat&, const Mat&, const Mat&) {}
};
}

template <class T> void run(T& o, const T& a, at::Tensor& t) {
  dsv3_fused_a_gemm(o, a, a);
  ::dsv3_fused_a_gemm(o, a, a);
  dsv3_fused_a_gemm(t, t, t);
}
auto later = [](auto& o) { dsv3_fused_a_gemm(o, o, o); };
