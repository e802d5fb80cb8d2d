// Somebody's program on the deleted functions, as it was, with the header that says so. It has no torch, so that a call
// throws; what it needs is that the declarations, the symbols and the warning are there.
#include <sgl_kernel_compat.h>

#include <cstdio>
#include <cstring>
#include <exception>

#include <ATen/core/Tensor.h>

static at::Tensor tensor() {
  return at::Tensor({nullptr, at::kBFloat16, c10::DeviceType::CPU, -1, {0, 0}, {1, 1}});
}

extern "C" void run_model() { // its name is in the warning, and its line
  at::Tensor output = tensor();
  dsv3_router_gemm(output, tensor(), tensor());
}

static bool throws(void (*f)()) {
  try {
    f();
  } catch (const std::exception &e) {
    return std::strstr(e.what(), "no torch is loaded in this process") != nullptr;
  }
  return false;
}

int main() {
  int count = throws(run_model) + throws(run_model) + throws(run_model);
  count += throws([] { bmm_fp8(tensor(), tensor(), tensor(), tensor(), tensor(), tensor(), 0); });
  count += std::strcmp(sgl_compat_status_name(SGL_COMPAT_ERROR_NO_TORCH), "SGL_COMPAT_ERROR_NO_TORCH") == 0;
  std::printf("%d of 5\n", count);
  return count == 5 ? 0 : 1;
}
