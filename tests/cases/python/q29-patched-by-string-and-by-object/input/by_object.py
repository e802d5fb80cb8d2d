import sgl_kernel
from sgl_kernel import dsv3_router_gemm
def t(monkeypatch):
    monkeypatch.setattr(sgl_kernel, "dsv3_router_gemm", f)
    mock.patch.object(sgl_kernel, "dsv3_fused_a_gemm")
    sgl_kernel.dsv3_fused_a_gemm(1)
