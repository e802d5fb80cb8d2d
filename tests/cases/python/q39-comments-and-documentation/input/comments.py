# from flashinfer import dsv3_router_gemm
# from sgl_kernel import dsv3_router_gemm
# from sgl_kernel import gelu_and_mul, dsv3_router_gemm as x
# flashinfer.dsv3_router_gemm and other::dsv3_router_gemm
# ::dsv3_router_gemm, `dsv3_router_gemm`, dsv3_router_gemm.
# moved to sglang.kernels.ops.gemm.dsv3_router_gemm.dsv3_router_gemm
# sglang.jit_kernel.dsv3_router_gemm
# dsv3_router_gemm_entry my_dsv3_router_gemm
# merge_state_v2 bmm_fp8
x = 1  # sgl_kernel.dsv3_router_gemm
# sgl_kernel_npu.dsv3_router_gemm sgl_kernel::dsv3_router_gemm
# flash_attn_varlen_func sgl_kernel.flash_attn.flash_attn_varlen_func
# torch.ops.sgl_kernel.dsv3_router_gemm torch.ops.other.dsv3_router_gemm
# sgl_kernel.merge_state_v2, sgl_kernel.gemm:dsv3_fused_a_gemm
