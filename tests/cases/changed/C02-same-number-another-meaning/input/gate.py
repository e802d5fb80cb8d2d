import sgl_kernel

sgl_kernel.topk_softmax(weights, ids, indices, logits)
sgl_kernel.moe.topk_softmax(weights, ids, gating_output=logits, renormalize=False)
