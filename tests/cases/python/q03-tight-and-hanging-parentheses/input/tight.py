from sgl_kernel import (dsv3_router_gemm, gelu_and_mul)
from sgl_kernel import (gelu_and_mul, dsv3_fused_a_gemm,)
from sgl_kernel import ( gelu_and_mul, dsv3_router_gemm )
