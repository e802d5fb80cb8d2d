/* TORCH_CHECK for the test of sgl_kernel_jit/torch.h where there is no PyTorch. */
#pragma once
#include <sstream>
#include <stdexcept>

namespace c10 {
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <typename... Parts> std::string str(const Parts &...parts) {
  std::ostringstream s;
  (s << ... << parts);
  return s.str();
}
} // namespace c10

#define TORCH_CHECK(condition, ...)                                                                                    \
  if (!(condition))                                                                                                    \
  throw ::c10::Error(::c10::str(__VA_ARGS__))
