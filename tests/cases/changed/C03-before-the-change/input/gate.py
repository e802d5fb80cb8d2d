import sgl_kernel

sgl_kernel.topk_softmax(weights, ids, indices, logits)
