import sgl_kernel as kernels
from sgl_kernel import moe
from sgl_kernel.moe import topk_softmax as softmax

kernels.topk_softmax(w, i, x, g)
moe.topk_softmax(w, i, x, g)
softmax(w, i, x, g)
softmax(w, i, g, renormalize=True)
