from sgl_kernel import topk_softmax

topk_softmax(topk_weights, topk_ids, gating_output, renormalize)
topk_softmax(topk_weights, topk_ids, self.gating_output, True)
topk_softmax(topk_weights, topk_ids, token_expert_indices, gating_output)
