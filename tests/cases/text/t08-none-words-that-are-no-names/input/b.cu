namespace bmm_fp8 {
void f() { g(/*dsv3_router_gemm=*/1); /* dsv3_router_gemm */ }
}  // namespace bmm_fp8
