import torch
import sgl_kernel


class Layer:
    ops = torch.ops.sgl_kernel

    def __init__(self):
        self.kernels = sgl_kernel
        self.scale = 1.0

    def forward(self, x):
        self.ops.dsv3_router_gemm(x)
        return self.kernels.dsv3_fused_a_gemm(x, self.scale)


class Other:
    def __init__(self, kernels):
        self.kernels = kernels

    def forward(self, x):
        return self.kernels.dsv3_fused_a_gemm(x)


Layer.ops.dsv3_router_gemm(1)
settings.kernels = sgl_kernel
settings.kernels.dsv3_router_gemm(1)
layer.kernels.dsv3_router_gemm(1)
