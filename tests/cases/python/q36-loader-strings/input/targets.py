A = "sgl_kernel.dsv3_router_gemm"
B = "sgl_kernel.gemm.dsv3_router_gemm"
C = "sgl_kernel:dsv3_router_gemm"
D = "gate = sgl_kernel.gemm:dsv3_router_gemm"
E = "sgl_kernel::dsv3_router_gemm"
F = "sgl_kernel::dsv3_router_gemm.default"
G = "torch.ops.sgl_kernel.dsv3_router_gemm"
H = "sgl_kernel." "dsv3_router_gemm"
I = 'sgl_kernel\x2edsv3_router_gemm'
J = "my_sgl_kernel.dsv3_router_gemm"
K = "sgl_kernel_npu:dsv3_router_gemm"
L = "other.sgl_kernel.dsv3_router_gemm"
M = "sgl_kernel.moe.dsv3_router_gemm"
N = b"sgl_kernel.dsv3_router_gemm"
O = "sglang.jit_kernel.dsv3_router_gemm:dsv3_router_gemm"
P = "sglang.jit_kernel.dsv3_router_gemm"
Q = "sglang.kernels.ops.gemm.dsv3_router_gemm.dsv3_router_gemm"
R = """
[app]
gate = sgl_kernel:dsv3_router_gemm
other = foo:dsv3_router_gemm
"""
S = "sgl_kernel:dsv3_router_gemm [extra]"
T = "sgl_kernel/dsv3_router_gemm"
U = "sgl_kernel-dsv3_router_gemm"
V = "./configs/dsv3_router_gemm/"
W = {"sgl_kernel.dsv3_router_gemm": 1}
X = "sgl_kernel::dsv3_router_gemm(Tensor! a) -> ()"
