d = {"sgl_kernel": 1}
reg(sys.modules, "x")
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
