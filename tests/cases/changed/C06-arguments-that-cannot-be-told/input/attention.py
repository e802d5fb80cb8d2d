from sgl_kernel import moe_align_block_size
from sgl_kernel.flash_attn import flash_attn_varlen_func

out = flash_attn_varlen_func(*inputs)
out = flash_attn_varlen_func(q, k, v, **options)
moe_align_block_size(ids, experts, block, **options)
moe_align_block_size(ids, experts, block, sorted_ids, expert_ids, padded, cumsum, **options)
