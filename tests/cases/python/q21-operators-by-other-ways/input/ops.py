from torch.ops import sgl_kernel as _ops
_ops.dsv3_router_gemm(1)
from torch.ops.sgl_kernel import dsv3_fused_a_gemm
import torch
torch.torch.ops.sgl_kernel.dsv3_router_gemm.default
getattr(torch.ops, "sgl_kernel").dsv3_router_gemm(1)
getattr(torch.ops.sgl_kernel, "dsv3_fused_a_gemm")
hasattr(torch.ops.sgl_kernel, "merge_state_v2")
