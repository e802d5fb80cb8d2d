// The same program after the scanner's rewrite: the supported function, on the CPU reference.
#include <sgl_kernel_jit/torch.h>

#include <cstdio>
#include <vector>

int main() {
  char message[300];
  if (sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, message, sizeof message) != SGL_JIT_OK)
    return 1;
  const int64_t tokens = 3, n = 16, k = 256;
  alignas(16) static float output[tokens * n];
  alignas(16) static uint16_t a[tokens * k], w[n * k];
  for (uint16_t &x : a)
    x = 0x4000; // 2
  for (uint16_t &x : w)
    x = 0x4040; // 3
  at::Tensor out({output, at::kFloat, c10::DeviceType::CPU, -1, {tokens, n}, {n, 1}});
  at::Tensor x({a, at::kBFloat16, c10::DeviceType::CPU, -1, {tokens, k}, {k, 1}});
  at::Tensor y({w, at::kBFloat16, c10::DeviceType::CPU, -1, {n, k}, {k, 1}});
  sgl_kernel_jit::dsv3_router_gemm(out, x, y);
  for (float value : output)
    if (value != 2.0f * 3.0f * k)
      return 2;
  std::printf("right\n");
  return 0;
}
