import torch
from sgl_kernel import rmsnorm
from sgl_kernel.kvcacheio import transfer_kv_per_layer_mla

rmsnorm(x, weight, 1e-6)
transfer_kv_per_layer_mla(src, dst, src_indices, dst_indices, item_size)
torch.ops.sgl_kernel.topk_softmax_cpu(hidden, gating, 8, True)
