#include <ATen/core/dispatch/Dispatcher.h>
auto a = find(std::string("sgl_kernel::") + "dsv3_router_gemm");
auto b = find("sgl_kernel" "::" "dsv3_fused_a_gemm");
auto c = c10::Symbol::fromDomainAndUnqualString("sgl_kernel", "dsv3_router_gemm");
auto d = find(std::string("other::") + "dsv3_router_gemm");
Row rows[] = {{"sgl_kernel", "dsv3_router_gemm"}};
