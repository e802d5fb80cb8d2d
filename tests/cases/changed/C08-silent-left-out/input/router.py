from sgl_kernel import dsv3_router_gemm

logits = dsv3_router_gemm(hidden, weight)
logits = dsv3_router_gemm(hidden, weight, out_dtype=torch.float32)
logits = dsv3_router_gemm(hidden, weight, torch.float32)
