import operator
import sgl_kernel

TABLE = {"dsv3_fused_a_gemm": "dsv3_router_gemm"}
LIST = ["merge_state_v2", "dsv3_fused_a_gemm"]
UNUSED = ["dsv3_router_gemm"]


class Kernel:
    attr = "dsv3_router_gemm"
    label = "dsv3_router_gemm"

    def __init__(self, fused):
        self.fused = "dsv3_fused_a_gemm" if fused else "merge_state_v2"
        self.name = "dsv3_fused_a_gemm"

    def load(self, i):
        print(self.label, self.name, UNUSED)
        getattr(sgl_kernel, self.fused)
        getattr(sgl_kernel, TABLE[i])
        getattr(sgl_kernel, LIST[i])
        return getattr(sgl_kernel, self.attr)


operator.attrgetter("dsv3_router_gemm")(sgl_kernel)
operator.methodcaller("dsv3_fused_a_gemm", 1)(sgl_kernel)
operator.attrgetter("dsv3_router_gemm")(other)
