#include <my/thing.h>
#include "sgl_kernel_ops.h"
#include "sgl_kernel_jit/torch.h"

void unknown(at::Tensor& out, my::Thing& thing, std::unordered_map<int, at::Tensor>& map) {
  sgl_kernel_jit::dsv3_router_gemm(out, thing.tensor(), map.at(3));
  for (auto& layer : thing.layers()) {
    sgl_kernel_jit::dsv3_fused_a_gemm(layer.out, torch::special::expit(layer.x), layer.w.transpose(0, 1));
    if (auto it = map.find(4); it != map.end()) sgl_kernel_jit::dsv3_router_gemm(it->second, out, out);
  }
  thing.run([&](auto&& x) { sgl_kernel_jit::dsv3_router_gemm(out, x, x); });
  std::thread worker([&] { sgl_kernel_jit::dsv3_fused_a_gemm(out, out, out); });
  auto later = std::async(std::launch::async, dsv3_router_gemm, std::ref(out), out, out);
  std::function<void()> bound = std::bind(&dsv3_router_gemm, std::ref(out), out, out);
  EXPECT_NO_THROW(sgl_kernel_jit::dsv3_router_gemm(out, f<int, 3>(out), out));
}

template <class... A>
void forward(A&&... a) {
  sgl_kernel_jit::dsv3_router_gemm(std::forward<A>(a)...);
}
