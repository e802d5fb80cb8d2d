import sgl_kernel
from unittest import mock
from sgl_kernel import dsv3_router_gemm
with mock.patch.multiple("sgl_kernel", dsv3_router_gemm=mock.DEFAULT): pass
with mock.patch.multiple(sgl_kernel, dsv3_fused_a_gemm=mock.DEFAULT, merge_state_v2=1): pass
f("sgl_kernel." + "dsv3_router_gemm", f"sgl_kernel::{'bmm_fp8'}")
