import sgl_kernel as k
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm

type A[k] = k.dsv3_router_gemm
type B = list[dsv3_router_gemm]


def f[k](x: k.dsv3_router_gemm) -> None: ...


class C[k](k.dsv3_router_gemm):
    x = k.dsv3_router_gemm
