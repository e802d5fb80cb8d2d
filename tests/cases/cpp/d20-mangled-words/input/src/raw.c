extern void _Z16dsv3_router_gemmRN2at6TensorERKS0_S3_(void *, void *, void *);
#pragma weak _Z17dsv3_fused_a_gemmRN2at6TensorERKS0_S3_

int dsv3_router_gemm(float *out, const float *a, const float *b);
int raw(float *x) { return dsv3_router_gemm(x, x, x); }
