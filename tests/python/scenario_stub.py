"""A package that somebody makes by hand, before torch: for another device, or in a test. Its operators are his."""
import sys, types


class Stub(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{self.__name__}.{name}"


sys.modules["sgl_kernel"] = Stub("sgl_kernel")
import torch
import sgl_kernel
import sgl_kernel_compat


def test_its_names_are_its_own():
    from sgl_kernel import dsv3_router_gemm, moe_fused_gate

    assert (dsv3_router_gemm, moe_fused_gate) == ("sgl_kernel.dsv3_router_gemm", "sgl_kernel.moe_fused_gate")


def test_it_may_define_operators():
    assert not [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("sgl_kernel::")]
    library = torch.library.Library("sgl_kernel", "DEF")
    library.define("moe_fused_gate(Tensor a) -> Tensor")
    library.define("dsv3_router_gemm(Tensor a) -> Tensor")
    torch.library.register_fake("sgl_kernel::moe_fused_gate")(lambda a: a)
    sgl_kernel_compat.install()
    assert len([name for name in torch._C._dispatch_get_all_op_names() if name.startswith("sgl_kernel::")]) == 2
