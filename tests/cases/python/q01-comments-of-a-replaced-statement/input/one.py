from sgl_kernel import (  # noqa: F401
    dsv3_router_gemm,
)
