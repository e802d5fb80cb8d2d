from typing import Literal, Optional, Union

import torch

__all__ = [
    "bmm_fp8",
    "downcast_fp8",
    "dsv3_fused_a_gemm",
    "dsv3_router_gemm",
    "get_backend",
    "set_backend",
    "sgl_per_tensor_quant_fp8",
    "warm",
    "warm_done",
]

__version__: str

def dsv3_router_gemm(
    hidden_states: torch.Tensor,
    router_weights: torch.Tensor,
    out_dtype: torch.dtype = torch.bfloat16,
    output: Optional[torch.Tensor] = None,
) -> torch.Tensor: ...
def dsv3_fused_a_gemm(
    mat_a: torch.Tensor, mat_b: torch.Tensor, output: Optional[torch.Tensor] = None
) -> torch.Tensor: ...
def bmm_fp8(
    A: torch.Tensor,
    B: torch.Tensor,
    A_scale: torch.Tensor,
    B_scale: torch.Tensor,
    dtype: torch.dtype,
    out: Optional[torch.Tensor] = None,
) -> torch.Tensor: ...
def downcast_fp8(
    k: torch.Tensor,
    v: torch.Tensor,
    k_out: torch.Tensor,
    v_out: torch.Tensor,
    k_scale: torch.Tensor,
    v_scale: torch.Tensor,
    loc: torch.Tensor,
    mult: int = 1,
    offset: int = 0,
) -> None: ...
def sgl_per_tensor_quant_fp8(
    input: torch.Tensor, output_q: torch.Tensor, output_s: torch.Tensor, is_static: bool
) -> None: ...
def get_backend() -> Literal["auto", "reference"]: ...
def set_backend(backend: Literal["auto", "reference"]) -> None: ...
def warm(
    op: Literal["dsv3_router_gemm", "dsv3_fused_a_gemm", "downcast_fp8", "sgl_per_tensor_quant_fp8"],
    n: int = 0,
    k: int = 0,
    out_dtype: torch.dtype = torch.bfloat16,
    device: Union[int, str, torch.device, None] = None,
) -> None: ...
def warm_done() -> None: ...
