import torch
from torch.library import Library, impl
lib = Library("sgl_kernel", "FRAGMENT")
lib.define("dsv3_router_gemm(Tensor! out, Tensor a, Tensor b) -> ()")
lib.impl("dsv3_fused_a_gemm", f, "CUDA")
lib.impl("merge_state_v2", f)
@impl(lib, "dsv3_router_gemm", "CUDA")
def g(): pass
other = torch.library.Library("other", "DEF")
other.define("dsv3_router_gemm(Tensor a) -> ()")
with torch.library._scoped_library("sgl_kernel", "IMPL") as l2:
    l2.impl("dsv3_router_gemm", f)
torch.library.define("sgl_kernel::dsv3_router_gemm", "(Tensor a) -> ()")
torch.library.define("sgl_kernel::dsv3_fused_a_gemm(Tensor a) -> ()")
torch.library.custom_op("other::dsv3_router_gemm")
torch.library.impl("sgl_kernel::bmm_fp8", "CUDA")
