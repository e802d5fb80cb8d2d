"""sgl_kernel_jit: the two DeepSeek-V3 decode GEMMs and some small operators as just-in-time kernels, and the batched FP8
product of cuBLASLt.

    dsv3_router_gemm(hidden_states, router_weights, out_dtype=torch.bfloat16, output=None) -> Tensor
    dsv3_fused_a_gemm(mat_a, mat_b, output=None) -> Tensor
    bmm_fp8(A, B, A_scale, B_scale, dtype, out=None) -> Tensor
    downcast_fp8(k, v, k_out, v_out, k_scale, v_scale, loc, mult=1, offset=0)
    hadamard_transform(x, scale=1.0) -> Tensor
    merge_state(v_a, s_a, v_b, s_b, v_merged=None, s_merged=None) -> (Tensor, Tensor)
    segment_packbits(x, input_indptr, output_indptr, y, batch_size)
    set_kv_buffer_kernel(k_cache, v_cache, loc, k, v, fallback=False)
    sgl_per_tensor_quant_fp8(input, output_q, output_s, is_static)

All are torch operators underneath (torch.ops.sgl_kernel_jit.NAME, with the deleted schemas or what they write added), so torch.compile, fake tensors
and CUDA graphs take them. Shapes, limits and environment variables: sgl_kernel_jit.h; errors are RuntimeErrors that name
the argument. Importing this starts no CUDA context and looks for no toolkit."""
import ctypes
from typing import Optional, Tuple

import torch

from sgl_kernel_jit import _library
from sgl_kernel_jit._version import __version__

__all__ = [
    "bmm_fp8", "downcast_fp8", "dsv3_fused_a_gemm", "dsv3_router_gemm", "get_backend", "hadamard_transform", "merge_state", "segment_packbits",
    "set_backend", "set_kv_buffer_kernel", "sgl_per_tensor_quant_fp8", "warm", "warm_done",
]

_why = _library.message_of(_library.compat().sgl_compat_register_jit_ops)
if _why:
    raise ImportError(f"sgl_kernel_jit: {_why}", name=__name__)
_router = torch.ops.sgl_kernel_jit.dsv3_router_gemm.default
_fused_a = torch.ops.sgl_kernel_jit.dsv3_fused_a_gemm.default
_bmm_fp8 = torch.ops.sgl_kernel_jit.bmm_fp8.default
_downcast_fp8 = torch.ops.sgl_kernel_jit.downcast_fp8.default
_hadamard_transform = torch.ops.sgl_kernel_jit.hadamard_transform.default
_merge_state = torch.ops.sgl_kernel_jit.merge_state.default
_segment_packbits = torch.ops.sgl_kernel_jit.segment_packbits.default
_store_kv_cache = torch.ops.sgl_kernel_jit.store_kv_cache.default
_per_tensor_quant_fp8 = torch.ops.sgl_kernel_jit.sgl_per_tensor_quant_fp8.default


def dsv3_router_gemm(
    hidden_states: torch.Tensor, router_weights: torch.Tensor, out_dtype: torch.dtype = torch.bfloat16, output: Optional[torch.Tensor] = None
) -> torch.Tensor:
    """hidden_states [num_tokens, hidden_dim] times router_weights [num_experts, hidden_dim], transposed; both bfloat16.

    Returns a new tensor [num_tokens, num_experts] of out_dtype (bfloat16 or float32), or writes into `output` and
    returns it; out_dtype does not count then."""
    if output is None:
        output = hidden_states.new_empty((hidden_states.size(0), router_weights.size(0)), dtype=out_dtype)
    _router(output, hidden_states, router_weights)
    return output


def dsv3_fused_a_gemm(mat_a: torch.Tensor, mat_b: torch.Tensor, output: Optional[torch.Tensor] = None) -> torch.Tensor:
    """mat_a [num_tokens, hd_in] times mat_b [hd_in, hd_out], all bfloat16; mat_b is column-major, as weight.t() is.

    Returns a new tensor [num_tokens, hd_out], or writes into `output` and returns it."""
    if output is None:
        output = mat_a.new_empty((mat_a.size(0), mat_b.size(1)))
    _fused_a(output, mat_a, mat_b)
    return output


_WORKSPACE = 32 << 20  # bytes, as the deleted function gave cuBLASLt


def bmm_fp8(
    A: torch.Tensor, B: torch.Tensor, A_scale: torch.Tensor, B_scale: torch.Tensor, dtype: torch.dtype, out: Optional[torch.Tensor] = None
) -> torch.Tensor:
    """A [batch, m, k] times B [batch, k, n], times both scales (float32, one element each); A and B are float8_e4m3fn or
    float8_e5m2, not both e5m2. B is column-major in each batch, as weight.transpose(1, 2) is.

    Returns a new tensor [batch, m, n] of dtype (bfloat16 or float16), or writes into `out` and returns it; dtype does
    not count then. Takes 32 MiB of workspace from torch's allocator for the call, so calls on several streams do not meet."""
    if out is None:
        out = A.new_empty((A.size(0), A.size(1), B.size(2)), dtype=dtype)
    _bmm_fp8(A, B, out, A_scale, B_scale, A.new_empty((_WORKSPACE if A.is_cuda else 0,), dtype=torch.uint8), 0)
    return out


def downcast_fp8(
    k: torch.Tensor, v: torch.Tensor, k_out: torch.Tensor, v_out: torch.Tensor, k_scale: torch.Tensor, v_scale: torch.Tensor, loc: torch.Tensor,
    mult: int = 1, offset: int = 0,
) -> None:
    """Writes k [tokens, heads, dim] (bfloat16 or float16) divided by k_scale (float32, one element) as float8_e4m3fn into slots
    of k_out: token t goes to slot loc[t] * mult + offset. The same of v. k_out may be uint8."""
    _downcast_fp8(k, v, k_out, v_out, k_scale, v_scale, loc, mult, offset)


def sgl_per_tensor_quant_fp8(input: torch.Tensor, output_q: torch.Tensor, output_s: torch.Tensor, is_static: bool) -> None:
    """Writes input (float32, bfloat16 or float16) divided by output_s (float32, one element) as float8_e4m3fn into output_q.

    Unless is_static, output_s is raised to the greatest absolute value / 448 before: pass torch.zeros(1)."""
    _per_tensor_quant_fp8(input, output_q, output_s, is_static)


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor, v_merged: Optional[torch.Tensor] = None,
    s_merged: Optional[torch.Tensor] = None,
) -> Tuple[torch.Tensor, torch.Tensor]:
    """Two partial results of attention, v [tokens, heads, dim] (bfloat16 or float16) with s [tokens, heads], logarithms of base 2
    of sums of exponentials, made one: v_merged and s_merged (float32), new tensors or those given."""
    s_a, s_b = s_a.to(torch.float32), s_b.to(torch.float32)
    v_merged = torch.empty_like(v_a) if v_merged is None else v_merged
    s_merged = torch.empty_like(s_a) if s_merged is None else s_merged
    _merge_state(v_a, s_a, v_b, s_b, v_merged, s_merged)
    return v_merged, s_merged


def hadamard_transform(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    """scale * H x along the last dimension, H the Hadamard matrix of Sylvester's order; float32, bfloat16 or float16. Where the
    dimension, at most 32768, is no power of two, as if zeros came behind it. Returns a new contiguous tensor."""
    rows = x.reshape(-1, x.size(-1))
    if rows.stride(-1) != 1 and rows.size(-1) > 1:
        rows = rows.contiguous()
    output = rows.new_empty(rows.shape)
    _hadamard_transform(rows, output, scale)
    return output.view(x.shape)


def segment_packbits(x: torch.Tensor, input_indptr: torch.Tensor, output_indptr: torch.Tensor, y: torch.Tensor, batch_size: int) -> None:
    """Packs segment s of x (bool), input_indptr[s] to input_indptr[s + 1], into bits of y (uint8) from output_indptr[s] on, the first
    in the lowest bit. The index pointers are int32."""
    _segment_packbits(x, input_indptr, output_indptr, y, batch_size)


def set_kv_buffer_kernel(
    k_cache: torch.Tensor, v_cache: torch.Tensor, loc: torch.Tensor, k: torch.Tensor, v: torch.Tensor, fallback: bool = False
) -> None:
    """k_cache[loc] = k and v_cache[loc] = v, which are of one dtype; loc is int32 or int64. As the deleted function, it lets torch do
    what the kernel refuses, and with fallback all."""
    if not fallback:
        try:
            _store_kv_cache(k_cache, v_cache, loc, k, v)
            return
        except RuntimeError:
            pass
    k_cache[loc] = k
    v_cache[loc] = v


_BACKENDS = ("auto", "reference")  # sgl_jit_backend
_OPS = (  # sgl_jit_op
    "dsv3_router_gemm", "dsv3_fused_a_gemm", "downcast_fp8", "sgl_per_tensor_quant_fp8", "merge_state", "hadamard_transform", "segment_packbits",
    "set_kv_buffer_kernel",
)
_DTYPES = {torch.float32: 1, torch.bfloat16: 2}  # sgl_jit_dtype


class _KernelSpec(ctypes.Structure):
    _fields_ = [("op", ctypes.c_int), ("n", ctypes.c_int64), ("k", ctypes.c_int64), ("output_dtype", ctypes.c_int)]


def get_backend():
    """ "auto" or "reference"; see set_backend."""
    return _BACKENDS[_library.jit().sgl_jit_get_backend()]


def set_backend(backend):
    """ "auto": CUDA tensors run on their device, CPU tensors are an error. "reference": CPU tensors are computed in plain
    C, for tests; CUDA tensors are an error. Overrides SGL_KERNEL_JIT_BACKEND."""
    if backend not in _BACKENDS:
        raise ValueError(f"set_backend: {backend!r} is neither 'auto' nor 'reference'")
    why = _library.message_of(_library.jit().sgl_jit_set_backend, _BACKENDS.index(backend))
    if why:
        raise RuntimeError(why)


def warm(op, n=0, k=0, out_dtype=torch.bfloat16, device=None):
    """Get one kernel ready on a CUDA device, as its first call would: read from the cache, or compiled. It then serves
    every number of tokens.

    op: "dsv3_router_gemm" (n is num_experts, k is hidden_dim), "dsv3_fused_a_gemm" (n is hd_out, k is hd_in), or
    another function of this module but bmm_fp8, whose one kernel serves every shape and dtype.
    device: an index or torch.device, the current one by default. RuntimeError when it cannot be had."""
    if op not in _OPS:
        raise ValueError(f"warm: {op!r} is none of {', '.join(_OPS)}")
    index = device
    if not isinstance(device, int):
        place = torch.device("cuda" if device is None else device)
        if place.type != "cuda":
            raise ValueError(f"warm: {place} is no CUDA device")
        index = torch.cuda.current_device() if place.index is None else place.index
    spec = _KernelSpec(_OPS.index(op), n, k, _DTYPES.get(out_dtype, 0) if op.startswith("dsv3") else 0)
    why = _library.message_of(_library.jit().sgl_jit_warm, ctypes.byref(spec), index)
    if why:
        raise RuntimeError(why)


def warm_done():
    """From now on a compile in this process is late, and SGL_KERNEL_JIT_MONITOR (off | warn | error) says what then."""
    _library.jit().sgl_jit_warm_done()
