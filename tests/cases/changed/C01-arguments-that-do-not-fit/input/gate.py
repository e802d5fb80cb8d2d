from sgl_kernel import moe_align_block_size, topk_softmax


def align(ids, experts, block, sorted_ids, expert_ids, padded, counts, cumsum):
    moe_align_block_size(ids, experts, block, sorted_ids, expert_ids, padded, counts, cumsum, True)
    moe_align_block_size(ids, experts, block, sorted_ids, expert_ids, padded)
    moe_align_block_size(ids, experts, block, sorted_ids, expert_ids, padded, cumsum)


def gate(weights, ids, indices, logits):
    topk_softmax(weights, ids, token_expert_indices=indices, gating_output=logits)
    topk_softmax(weights, ids, gating_output=logits, renormalize=True)
