"""The supported API and the old names under torch.compile, opcheck, fake tensors, inference mode (reference backend)."""
import warnings

import torch
import sgl_kernel
import sgl_kernel_jit
from checks import assert_close, operands, raises, warned
from sgl_kernel import dsv3_router_gemm
from torch._subclasses.fake_tensor import FakeTensorMode

torch.manual_seed(7)


def compiled(f, **kw):
    torch._dynamo.reset()
    return torch.compile(f, fullgraph=True, backend=kw.pop("backend", "aot_eager"), **kw)


def test_supported_api():
    a, w, want = operands(torch, 4, 384)
    assert sgl_kernel_jit.dsv3_router_gemm(a, w).dtype == torch.bfloat16
    assert_close(torch, sgl_kernel_jit.dsv3_router_gemm(a, w, torch.float32), want)
    mine = torch.zeros(4, 384)
    assert sgl_kernel_jit.dsv3_router_gemm(a, w, output=mine) is mine
    assert_close(torch, mine, want)
    a, w, want = operands(torch, 2, 2112)
    assert_close(torch, sgl_kernel_jit.dsv3_fused_a_gemm(a, w.t()), want)
    raises(RuntimeError, "mat_b", sgl_kernel_jit.dsv3_fused_a_gemm, a, w.t().contiguous())
    raises(ValueError, "'cuda'", sgl_kernel_jit.set_backend, "cuda")
    raises(ValueError, "bmm_fp8", sgl_kernel_jit.warm, "bmm_fp8", 1, 1)
    assert sgl_kernel_jit.get_backend() == "reference"
    sgl_kernel_jit.set_backend("auto")
    raises(RuntimeError, "CPU", sgl_kernel_jit.dsv3_router_gemm, *operands(torch, 1, 256)[:2])
    sgl_kernel_jit.set_backend("reference")


def test_warm_says_why_not():
    raises(RuntimeError, "hidden_dim", sgl_kernel_jit.warm, "dsv3_router_gemm", 256, 7, device=0)
    raises(RuntimeError, "libcuda", sgl_kernel_jit.warm, "dsv3_router_gemm", 256, 7168, torch.float32, "cuda:0")
    for cpu in ("cpu", torch.device("cpu", 0)):
        raises(ValueError, "cpu", sgl_kernel_jit.warm, "dsv3_router_gemm", 256, 7168, torch.float32, cpu)


def test_fullgraph():
    layers = {
        "jit": lambda a, w: sgl_kernel_jit.dsv3_router_gemm(a, w, torch.float32) * 2,
        "old name": lambda a, w: dsv3_router_gemm(a, w, torch.float32) * 2,
        "old attribute": lambda a, w: sgl_kernel.dsv3_router_gemm(a, w, out_dtype=torch.float32) * 2,
    }
    for name, layer in layers.items():
        for backend in ("eager", "aot_eager"):
            f = compiled(layer, backend=backend)
            for tokens in (2, 5):
                a, w, want = operands(torch, tokens, 256)
                assert_close(torch, f(a, w), want * 2)


def under_filters(layer, warned):
    """Where torch looks a name up, while it traces and in its guards, no filter makes an error of the warning."""
    a, w, _ = operands(torch, 2, 256)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = compiled(layer)
        for _ in range(2):
            assert torch.equal(f(a, w.t()), sgl_kernel_jit.dsv3_fused_a_gemm(a, w.t()) + 1)
        raises(DeprecationWarning, f"{warned} is deprecated", layer, a, w.t())


def test_old_attribute_under_filters():
    def layer(a, w):
        return sgl_kernel.gemm.dsv3_fused_a_gemm(a, w) + 1

    under_filters(layer, "sgl_kernel.gemm.dsv3_fused_a_gemm")


def test_old_import_under_filters():
    """An import statement that torch traces, and carries out itself."""

    def layer(a, w):
        from sgl_kernel import bmm_fp8, dsv3_fused_a_gemm

        return dsv3_fused_a_gemm(a, w) + (bmm_fp8 is not None)

    under_filters(layer, "sgl_kernel.bmm_fp8")


def test_operators_fullgraph():
    def layer(a, w):
        output = torch.empty(a.shape[0], w.shape[0])
        torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w)
        return output + 1

    a, w, want = operands(torch, 3, 256)
    f = compiled(layer)
    result, texts = warned(lambda: f(a, w))
    assert_close(torch, result, want + 1)
    assert len(texts) == 1, texts  # inside the kernel, at run time
    assert warned(lambda: f(a, w))[1] == []


def test_no_warning_is_traced():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = compiled(lambda a, w: dsv3_router_gemm(a, w))
        a, w, want = operands(torch, 2, 256)
        assert_close(torch, f(a, w), want)


def test_dynamic():
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    torch._dynamo.reset()
    f = torch.compile(lambda a, w, o: sgl_kernel_jit.dsv3_fused_a_gemm(a, w, o) + 1, fullgraph=True, dynamic=True, backend=counter)
    for tokens in (2, 3, 7):
        a, w, _ = operands(torch, tokens, 32, 256)
        output = torch.zeros(tokens, 32, dtype=torch.bfloat16)
        assert torch.equal(f(a, w.t(), output), sgl_kernel_jit.dsv3_fused_a_gemm(a, w.t()) + 1)
        assert torch.equal(output, sgl_kernel_jit.dsv3_fused_a_gemm(a, w.t()))  # written in place
    assert counter.frame_count == 1, counter.frame_count


def test_export():
    class Layer(torch.nn.Module):
        def forward(self, a, w):
            return sgl_kernel_jit.dsv3_router_gemm(a, w, torch.float32)

    a, w, want = operands(torch, 2, 256)
    assert_close(torch, torch.export.export(Layer(), (a, w)).module()(a, w), want)


def test_opcheck():
    a, w, _ = operands(torch, 2, 32, 256)
    for space in (torch.ops.sgl_kernel_jit, torch.ops.sgl_kernel):
        for op, operand in ((space.dsv3_router_gemm, w), (space.dsv3_fused_a_gemm, w.t())):
            result = torch.library.opcheck(op.default, (torch.empty(2, 32, dtype=torch.bfloat16), a, operand))
            assert set(result.values()) == {"SUCCESS"}, result


def test_fake_and_meta():
    for mode in (FakeTensorMode(), torch.device("meta")):
        with mode:
            a, w = torch.empty(2, 7168, dtype=torch.bfloat16), torch.empty(256, 7168, dtype=torch.bfloat16)
            result = sgl_kernel_jit.dsv3_router_gemm(a, w, torch.float32)
            assert result.shape == (2, 256) and result.dtype == torch.float32
            assert sgl_kernel_jit.dsv3_fused_a_gemm(a, w.t()).shape == (2, 256)


def test_modes_and_grad():
    a, w, want = operands(torch, 2, 256)
    for mode in (torch.inference_mode, torch.no_grad):
        with mode():
            assert_close(torch, sgl_kernel_jit.dsv3_router_gemm(a, w), want)
    result = sgl_kernel_jit.dsv3_router_gemm(a.requires_grad_(), w.requires_grad_())
    assert not result.requires_grad
    assert_close(torch, result, want)
    assert_close(torch, compiled(lambda a, w: sgl_kernel_jit.dsv3_router_gemm(a, w))(a, w).detach(), want)


def test_no_tokens():
    a, w = torch.empty(0, 7168, dtype=torch.bfloat16), torch.zeros(256, 7168, dtype=torch.bfloat16)
    assert sgl_kernel_jit.dsv3_router_gemm(a, w).shape == (0, 256)
    assert sgl_kernel_jit.dsv3_fused_a_gemm(a, w.t()).shape == (0, 256)
    assert compiled(lambda a, w: sgl_kernel_jit.dsv3_router_gemm(a, w))(a, w).shape == (0, 256)
