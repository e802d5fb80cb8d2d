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

// Two matrices of ones in FP8, with scales whose product is 1/4: every output is K / 4.
static int bmm(const std::string &what, c10::DeviceType device, int8_t index) {
  const int64_t batch = 2, m = 3, n = 8, k = 32;
  alignas(256) static unsigned char workspace[512], output[2 * 3 * 8 * 2];
  alignas(16) static uint8_t a[2 * 3 * 32], b[2 * 32 * 8];
  static float scales[2] = {2.0f, 0.125f};
  const bool half = what.find("half") != std::string::npos, e5m2 = what.find("e5m2") != std::string::npos;
  memset(a, e5m2 ? 0x3c : 0x38, sizeof a);
  memset(b, 0x38, sizeof b);
  at::Tensor x({a, e5m2 ? at::kFloat8_e5m2 : at::kFloat8_e4m3fn, device, index, {batch, m, k}, {m * k, k, 1}});
  at::Tensor y({b, at::kFloat8_e4m3fn, device, index, {batch, k, n}, {k * n, 1, k}});
  at::Tensor d({output, half ? at::kHalf : at::kBFloat16, device, index, {batch, m, n}, {m * n, n, 1}});
  at::Tensor x_scale({&scales[0], at::kFloat, device, index, {1}, {1}}),
      y_scale({&scales[1], at::kFloat, device, index, {}, {}});
  at::Tensor work({workspace, at::kByte, device, index, {512}, {1}});
  if (what.find("spread") != std::string::npos)
    work = at::Tensor({workspace, at::kByte, device, index, {512}, {0}});
  if (what.find("elsewhere") != std::string::npos)
    work = at::Tensor({workspace, at::kByte, c10::DeviceType::CPU, -1, {512}, {1}});
  if (what.find("undefined") != std::string::npos)
    work = at::Tensor();
  try {
    sgl_kernel_jit::bmm_fp8(x, y, d, x_scale, y_scale, work, 77);
  } catch (const c10::Error &e) {
    printf("threw: %s\n", e.what());
    return 0;
  }
  bool right = true;
  for (int64_t i = 0; i < batch * m * n; i++) {
    uint16_t bits;
    memcpy(&bits, output + i * 2, 2);
    right = right && bits == (half ? 0x4800 : 0x4100); // 8
  }
  printf("%s\n", right ? "ok" : "wrong result");
  return 0;
}

int main(int argc, char **argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const bool cuda = what.find("cuda") == 0, fused = what.find("fused") != std::string::npos;
  const c10::DeviceType device = cuda ? c10::DeviceType::CUDA : c10::DeviceType::CPU;
  const int8_t index = cuda ? 1 : -1;
  if (what.find("bmm") != std::string::npos)
    return bmm(what, device, index);
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
