"""The wheel's own library is missing: all forms say so, with its path, and the rest works."""
import os, sys

import torch
import sgl_kernel
from checks import operands, raises


def test_first_cause_is_told():
    missing = "libsgl_kernel_jit.so.0"
    assert sgl_kernel.fp8_scaled_mm() == "fp8_scaled_mm" and not hasattr(sgl_kernel, "dsv3_router_gemm")
    e = raises(ImportError, "No such file", lambda: exec("from sgl_kernel import dsv3_router_gemm"))
    assert str(e).startswith("sgl_kernel.dsv3_router_gemm cannot run here: sgl_kernel_jit: cannot load /") and str(e).count(missing) == 1, e
    assert str(e).index("No such file") < str(e).index("has dropped it in 0.4.5"), e
    a, w, _ = operands(torch, 1, 256)
    e = raises(RuntimeError, missing, torch.ops.sgl_kernel.dsv3_router_gemm, torch.empty(1, 256), a, w)
    assert str(e).startswith("torch.ops.sgl_kernel.dsv3_router_gemm cannot run here: sgl_kernel_jit: cannot load /"), e
    raises(ImportError, missing, lambda: exec("import sgl_kernel_jit"))


def test_library_for_another_machine():
    """The loader calls it a file that is not there."""
    (folder,) = [path for path in sys.path if os.path.isdir(os.path.join(path, "sgl_kernel_jit"))]
    with open("/proc/self/exe", "rb") as program:
        header = bytearray(program.read(4096))
    header[18] ^= 1  # e_machine
    path = os.path.join(folder, "sgl_kernel_jit/lib/libsgl_kernel_jit.so.0")
    for content, why in ((header, "made for another kind of processor"), (b"no ELF " * 999, "invalid ELF header")):
        with open(path, "wb") as file:
            file.write(content)
        raises(ImportError, f"cannot load {path}: {why}; sgl_kernel has dropped it", lambda: exec("from sgl_kernel import dsv3_router_gemm"))
