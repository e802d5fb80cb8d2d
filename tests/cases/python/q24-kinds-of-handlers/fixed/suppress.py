import contextlib as c
from contextlib import suppress as quiet
with c.suppress(ImportError): from sgl_kernel import dsv3_router_gemm
with quiet(ImportError, ValueError):
    from sgl_kernel import dsv3_router_gemm
with c.suppress(ValueError):
    from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
with pytest.raises(ImportError):
    from sgl_kernel import dsv3_router_gemm
s = c.suppress(ImportError)
with a, s:
    from sgl_kernel import dsv3_router_gemm
