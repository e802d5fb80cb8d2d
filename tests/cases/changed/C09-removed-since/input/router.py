from sgl_kernel import dsv3_router_gemm  # sgl-migrate: ignore[dsv3_router_gemm] reason=vendored

logits = dsv3_router_gemm(hidden, weight)
