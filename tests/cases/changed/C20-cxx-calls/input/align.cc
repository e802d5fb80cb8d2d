#include "sgl_kernel_ops.h"

void run(torch::Tensor ids, Helper helper) {
  moe_align_block_size(ids, 256, 64, sorted, experts, padded, cumsum, true);
  ::moe_align_block_size(ids, 256, 64, sorted, experts, padded, f(a, b), std::max<int>(1, 2));
  moe_align_block_size(ids, 256, 64, sorted, experts, padded, cumsum, true, false);
  helper.moe_align_block_size(ids);
  helper->moe_align_block_size(ids);
  other::moe_align_block_size(ids);
  // moe_align_block_size(ids)
}
