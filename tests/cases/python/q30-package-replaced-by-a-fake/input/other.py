d = {"sgl_kernel": 1}
reg(sys.modules, "x")
from sgl_kernel import dsv3_router_gemm
