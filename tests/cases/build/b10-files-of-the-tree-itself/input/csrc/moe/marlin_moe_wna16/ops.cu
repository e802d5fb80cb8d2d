void moe_gemm() {}
