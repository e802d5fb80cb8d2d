#include "sgl_kernel_ops.h"
#include "sgl_kernel_jit/torch.h"

#define CALL(function, ...) function(__VA_ARGS__)
#define OTHERS(x) acme::dsv3_router_gemm(x)
#define METHOD(object) (object).dsv3_router_gemm()
#define LONGER(x) dsv3_router_gemm##x
#define PARAMETER(dsv3_router_gemm) (dsv3_router_gemm + 1)
#define GLOBAL ::dsv3_router_gemm
#define OPERATOR_NAME "sgl_kernel::dsv3_router_gemm"

void run(std::function<void()> work);

void macros(at::Tensor& out) {
  checked(dsv3_router_gemm(out, out, out));
  CALL(dsv3_router_gemm, out, out, out);
  checked([&] {
    dsv3_fused_a_gemm(out, out, out);
  }());
  run([&] { sgl_kernel_jit::dsv3_router_gemm(out, out, out); });
}
