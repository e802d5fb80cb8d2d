#include "sgl_kernel_ops.h"
#include "first.inl"

namespace acme {
#include "second.inl"
}  // namespace acme

struct Layer {
#include "members.inc"
};
