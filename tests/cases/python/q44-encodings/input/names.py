def été(): pass
from sgl_kernel import dsv3_router_gemm as é
