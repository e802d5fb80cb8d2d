from functools import cached_property

_KERNELS = None


def kernels():
    global _KERNELS
    if _KERNELS is None:
        try:
            import sgl_kernel as module

            _KERNELS = module
        except ImportError:
            _KERNELS = False
    return _KERNELS


class Lazy:
    @cached_property
    def ops(self):
        import sgl_kernel

        return sgl_kernel

    def load(self):
        import sgl_kernel.gemm as gemm

        return gemm

    def run(self, x):
        self.ops.dsv3_router_gemm(x)
        self.load().dsv3_fused_a_gemm(x)
        self.load.dsv3_fused_a_gemm(x)


def run(x):
    return kernels().dsv3_router_gemm(x) if kernels() else x


k = kernels()
k.dsv3_fused_a_gemm(1)
kernels.dsv3_router_gemm(1)
