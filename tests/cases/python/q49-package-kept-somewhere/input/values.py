import importlib
import flashinfer
import sgl_kernel
import torch._ops
from typing import Any, cast

BACKENDS = {"sgl": sgl_kernel, "fi": flashinfer}
load = lambda: sgl_kernel
a, b = sgl_kernel, flashinfer


def run(x, name, k=sgl_kernel, fi=flashinfer):
    k.dsv3_router_gemm(x)
    fi.dsv3_router_gemm(x)
    a.dsv3_router_gemm(x)
    b.dsv3_router_gemm(x)
    load().dsv3_fused_a_gemm(x)
    BACKENDS["sgl"].dsv3_router_gemm(x)
    BACKENDS["fi"].dsv3_router_gemm(x)
    BACKENDS[name].dsv3_fused_a_gemm(x)
    importlib.reload(sgl_kernel).dsv3_router_gemm(x)
    cast(Any, sgl_kernel).dsv3_router_gemm(x)
    torch._ops.ops.sgl_kernel.dsv3_router_gemm(x)


def own(x, m=None):
    if m is None:
        import sgl_kernel as m
    m.dsv3_router_gemm(x)


for m in (flashinfer, sgl_kernel):
    m.dsv3_router_gemm(1)
[m.dsv3_fused_a_gemm(1) for _, m in [("fi", flashinfer), ("sgl", sgl_kernel)]]
[m.dsv3_fused_a_gemm(1) for m in (flashinfer, other)]
