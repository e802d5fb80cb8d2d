import torch
import torch.ops as operators

torch.ops.sgl_kernel.moe_align_block_size(i, n, b, s, e, p, c, True)
torch.ops.sgl_kernel.moe_align_block_size.default(i, n, b, s, e, p, c, True, False)
ops = torch.ops.sgl_kernel
ops.moe_align_block_size.default(i, n, b, s, e, p, c, True)
torch.ops.other.moe_align_block_size(i, n)
