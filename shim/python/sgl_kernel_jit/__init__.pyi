from typing import Literal, Optional, Tuple, Union

import torch

__all__ = [
    "bmm_fp8",
    "downcast_fp8",
    "dsv3_fused_a_gemm",
    "dsv3_router_gemm",
    "get_backend",
    "hadamard_transform",
    "merge_state",
    "segment_packbits",
    "set_backend",
    "set_kv_buffer_kernel",
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
def merge_state(
    v_a: torch.Tensor,
    s_a: torch.Tensor,
    v_b: torch.Tensor,
    s_b: torch.Tensor,
    v_merged: Optional[torch.Tensor] = None,
    s_merged: Optional[torch.Tensor] = None,
) -> Tuple[torch.Tensor, torch.Tensor]: ...
def hadamard_transform(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor: ...
def segment_packbits(
    x: torch.Tensor, input_indptr: torch.Tensor, output_indptr: torch.Tensor, y: torch.Tensor, batch_size: int
) -> None: ...
def set_kv_buffer_kernel(
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    loc: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    fallback: bool = False,
) -> None: ...
def get_backend() -> Literal["auto", "reference"]: ...
def set_backend(backend: Literal["auto", "reference"]) -> None: ...
def warm(
    op: Literal[
        "dsv3_router_gemm",
        "dsv3_fused_a_gemm",
        "downcast_fp8",
        "sgl_per_tensor_quant_fp8",
        "merge_state",
        "hadamard_transform",
        "segment_packbits",
        "set_kv_buffer_kernel",
    ],
    n: int = 0,
    k: int = 0,
    out_dtype: torch.dtype = torch.bfloat16,
    device: Union[int, str, torch.device, None] = None,
) -> None: ...
def warm_done() -> None: ...
