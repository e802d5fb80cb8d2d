"""torch.compile with its default backend, whose generated code calls the operators (reference backend)."""
import torch
import torch._inductor.config
import sgl_kernel_jit
from checks import assert_close, operands
from sgl_kernel import dsv3_router_gemm

torch._inductor.config.cpp.vec_isa_ok = False  # else it compiles a program for each kind of vector that there is


def test_inductor():
    mine = torch.zeros(7, 256)

    def layer(a, w, output):
        torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w)
        return dsv3_router_gemm(a, w, torch.float32) + output, sgl_kernel_jit.dsv3_fused_a_gemm(a, w.t())

    for dynamic, shapes in ((False, (2,)), (True, (2, 7))):
        torch._dynamo.reset()
        f = torch.compile(layer, fullgraph=True, dynamic=dynamic)
        for tokens in shapes:
            a, w, want = operands(torch, tokens, 256)
            both, fused = f(a, w, mine[:tokens])
            assert_close(torch, mine[:tokens], want)
            assert_close(torch, both, want * 2)
            assert_close(torch, fused, want)
