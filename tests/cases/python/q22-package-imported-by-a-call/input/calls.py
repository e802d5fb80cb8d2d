import importlib, pytest, sys
importlib.import_module("sgl_kernel").dsv3_router_gemm(1)
m = __import__("sgl_kernel.gemm", fromlist=["dsv3_router_gemm"]).dsv3_router_gemm
k = pytest.importorskip("sgl_kernel")
k.dsv3_router_gemm(2)
sys.modules["sgl_kernel"].dsv3_router_gemm
p = __import__("sgl_kernel")
p.gemm.dsv3_fused_a_gemm
from importlib import import_module as im
im(".gemm", "sgl_kernel").dsv3_router_gemm
NAME = "sgl_kernel"
im(NAME).dsv3_fused_a_gemm
