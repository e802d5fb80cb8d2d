#include "sgl_kernel/kernels.h"
#define SGL(name) dsv3_##name
static void dsv3_router_gemm(int) {}
void g() { SGL(router_gemm)(1); }
