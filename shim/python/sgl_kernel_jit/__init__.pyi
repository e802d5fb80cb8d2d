from typing import Literal, Optional, Union

import torch

__all__ = ["bmm_fp8", "dsv3_fused_a_gemm", "dsv3_router_gemm", "get_backend", "set_backend", "warm", "warm_done"]

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
def get_backend() -> Literal["auto", "reference"]: ...
def set_backend(backend: Literal["auto", "reference"]) -> None: ...
def warm(
    op: Literal["dsv3_router_gemm", "dsv3_fused_a_gemm"],
    n: int,
    k: int,
    out_dtype: torch.dtype = torch.bfloat16,
    device: Union[int, str, torch.device, None] = None,
) -> None: ...
def warm_done() -> None: ...
