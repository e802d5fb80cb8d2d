from flashinfer import topk_softmax as theirs
from .kernels import moe_align_block_size


def topk_softmax(a):
    return a


def run(rmsnorm, flash_attn_varlen_func):
    topk_softmax(1)
    theirs(1)
    moe_align_block_size(1)
    rmsnorm()
    flash_attn_varlen_func(1)
