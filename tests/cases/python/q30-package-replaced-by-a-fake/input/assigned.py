import sys
from unittest import mock
sys.modules["sgl_kernel"] = mock.Mock()
from sgl_kernel import dsv3_router_gemm
