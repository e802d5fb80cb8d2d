// A user of sgl_kernel_jit/torch.h. The first argument says what to do; test_public.py compiles and runs it, against
// tests/jit/torch or a real PyTorch's headers alike. Prints what was thrown, or "ok".
#include <cmath>
#include <cstdio>
#include <cstring>
#include <sgl_kernel_jit/torch.h>
#include <string>
#include <vector>

static std::vector<uint16_t> ones(size_t count) {
  return std::vector<uint16_t>(count, 0x3f80);
}

int main(int argc, char **argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const bool cuda = what.find("cuda") == 0, fused = what.find("fused") != std::string::npos;
  const c10::DeviceType device = cuda ? c10::DeviceType::CUDA : c10::DeviceType::CPU;
  const int8_t index = cuda ? 1 : -1;
  const int64_t tokens = 3, n = 16, k = 256;
  alignas(16) static float output[3 * 16];
  auto a = ones(tokens * k), w = ones(n * k);
  at::Tensor out({output, fused ? at::kBFloat16 : at::kFloat, device, index, {tokens, n}, {n, 1}});
  at::Tensor x({a.data(), at::kBFloat16, device, index, {tokens, k}, {k, 1}});
  at::Tensor y({w.data(), at::kBFloat16, device, index, {n, k}, {k, 1}});
  if (fused)
    y = at::Tensor({w.data(), at::kBFloat16, device, index, {k, n}, {1, k}});
  if (what == "double")
    x = at::Tensor({a.data(), at::kDouble, device, index, {tokens, k}, {k, 1}});
  if (what == "meta")
    x = at::Tensor({nullptr, at::kBFloat16, c10::DeviceType::Meta, 0, {tokens, k}, {k, 1}});
  if (what == "undefined")
    y = at::Tensor();
  try {
    if (fused)
      sgl_kernel_jit::dsv3_fused_a_gemm(out, x, y);
    else
      sgl_kernel_jit::dsv3_router_gemm(out, x, y);
  } catch (const c10::Error &e) {
    printf("threw: %s\n", e.what());
    return 0;
  }
  bool right = true;
  for (int64_t i = 0; i < tokens * n; i++) {
    uint16_t bits;
    memcpy(&bits, reinterpret_cast<char *>(output) + i * 2, 2);
    right = right && (fused ? bits == 0x4380 : output[i] == 256.0f); // 256 in bf16
  }
  printf("%s\n", right ? "ok" : "wrong result");
  return 0;
}
