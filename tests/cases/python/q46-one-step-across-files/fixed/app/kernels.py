import sgl_kernel as sk
import sgl_kernel
from sgl_kernel import gemm
import torch
ns = torch.ops.sgl_kernel
alias = sgl_kernel
try:
    import sgl_kernel as guarded
except ImportError: guarded = None
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
