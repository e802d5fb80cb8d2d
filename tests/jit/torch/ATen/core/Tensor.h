/* As much of at::Tensor as sgl_kernel_jit/torch.h uses, with the names and types that PyTorch 2.8 and newer have. Made
 * for the test of that header where there is no PyTorch. */
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

namespace c10 {
enum class ScalarType : int8_t {
  Byte = 0,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  Bool = 11,
  BFloat16 = 15,
  Float8_e5m2 = 23,
  Float8_e4m3fn = 24
};
enum class DeviceType : int8_t { CPU = 0, CUDA = 1, Meta = 14 };
using DeviceIndex = int8_t;
class IntArrayRef {
public:
  IntArrayRef(const std::vector<int64_t> &v) : v_(&v) {}
  const int64_t *data() const {
    return v_->data();
  }

private:
  const std::vector<int64_t> *v_;
};
} // namespace c10

namespace at {
using c10::ScalarType;
constexpr ScalarType kFloat = ScalarType::Float, kDouble = ScalarType::Double, kBFloat16 = ScalarType::BFloat16;
constexpr ScalarType kByte = ScalarType::Byte, kHalf = ScalarType::Half, kFloat8_e5m2 = ScalarType::Float8_e5m2,
                     kFloat8_e4m3fn = ScalarType::Float8_e4m3fn, kInt = ScalarType::Int, kLong = ScalarType::Long,
                     kBool = ScalarType::Bool;

struct TensorImpl {
  void *data;
  ScalarType type;
  c10::DeviceType device;
  c10::DeviceIndex index;
  std::vector<int64_t> sizes, strides;
};

class Tensor {
public:
  Tensor() = default;
  explicit Tensor(TensorImpl impl) : impl_(std::make_shared<TensorImpl>(std::move(impl))) {}
  bool defined() const {
    return impl_ != nullptr;
  }
  int64_t dim() const {
    return static_cast<int64_t>(impl_->sizes.size());
  }
  c10::IntArrayRef sizes() const {
    return impl_->sizes;
  }
  c10::IntArrayRef strides() const {
    return impl_->strides;
  }
  ScalarType scalar_type() const {
    return impl_->type;
  }
  int64_t numel() const {
    int64_t count = 1;
    for (int64_t size : impl_->sizes)
      count *= size;
    return count;
  }
  bool is_contiguous() const { /* here of one dimension only */
    return impl_->strides[0] == 1;
  }
  bool is_cuda() const {
    return impl_->device == c10::DeviceType::CUDA;
  }
  bool is_cpu() const {
    return impl_->device == c10::DeviceType::CPU;
  }
  c10::DeviceIndex get_device() const {
    return impl_->index;
  }
  const void *const_data_ptr() const {
    return impl_->data;
  }
  void *mutable_data_ptr() const {
    return impl_->data;
  }

private:
  std::shared_ptr<TensorImpl> impl_;
};
} // namespace at
