"""The old operator and the old C++ symbol on real torch, CPU reference backend. usage: through_torch.py LIB_DIR LEGACY_SO"""

import ctypes
import sys

import torch

lib_dir, legacy_so = sys.argv[1:]
compat = ctypes.CDLL(f"{lib_dir}/libsgl_kernel_compat.so")
status = compat.sgl_compat_register_ops(None, 0)
assert status == 0, f"sgl_compat_register_ops: status {status}"

hidden_states = torch.randn(4, 7168, dtype=torch.bfloat16)
router_weights = torch.randn(256, 7168, dtype=torch.bfloat16)
want = hidden_states.double() @ router_weights.double().t()


def report(name, output):
    error = ((output.double() - want).norm() / want.norm()).item()
    print(f"{name}: {list(output.shape)} {output.dtype}, relative error {error:.1e} against float64")
    assert error < 2e-7


output = torch.empty(4, 256)
torch.ops.sgl_kernel.dsv3_router_gemm(output, hidden_states, router_weights)
report("torch.ops.sgl_kernel.dsv3_router_gemm", output)

# The binary that was linked against the old library gets at::Tensor pointers, as its own C++ code would pass them.
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
output = torch.empty(4, 256)
capsules = torch._C._aoti.unsafe_alloc_void_ptrs_from_tensors([output, hidden_states, router_weights])
tensors = [ctypes.c_void_p(pointer_of(capsule, None)) for capsule in capsules]
ctypes.CDLL(legacy_so).legacy_router(*tensors)
report("dsv3_router_gemm(at::Tensor&, at::Tensor const&, at::Tensor const&)", output)
