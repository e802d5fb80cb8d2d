extern "C" { fn _Z17dsv3_fused_a_gemmRN2at6TensorERKS0_S3_(); }
fn dsv3_router_gemm() {}
