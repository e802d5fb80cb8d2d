call _Z16dsv3_router_gemmRN2at6TensorERKS0_S3_@PLT
call dsv3_router_gemm
/* dsv3_router_gemm */
