"""Next to an sglang that has what an operator had: the call of one that takes the same goes there, guards find none."""
import warnings
from unittest import mock

import torch
import sgl_kernel
from sglang.kernels.ops.quantization import hadamard
from checks import raises, warned

hadamard.hadamard_transform_12n = lambda x, scale=1.0: x * scale
assert "sgl_kernel_compat" in __import__("sys").modules


def test_it_is_called():
    assert not hasattr(torch.ops.sgl_kernel, "fast_hadamard_transform_12N")  # it may not be there
    x = torch.arange(4.0)
    calls = lambda: [torch.ops.sgl_kernel.fast_hadamard_transform_12N(x, 2.0), torch.ops.sgl_kernel.fast_hadamard_transform_12N.default(x, 2.0)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        raises(Warning, "torch.ops.sgl_kernel.fast_hadamard_transform_12N is deprecated", calls)
    results, texts = warned(calls)
    assert all(torch.equal(result, x * 2) for result in results)
    assert texts == [(calls.__code__.co_firstlineno, texts[0][1])] and texts[0][1].startswith("torch.ops.sgl_kernel.fast_hadamard_transform_12N is deprecated"), texts
    with mock.patch.dict("os.environ", {"RANK": "1"}):
        assert warned(calls)[1] == []


def test_it_is_an_operator_as_any():
    """To who has called one."""
    assert hasattr(torch.ops.sgl_kernel, "fast_hadamard_transform_12N")
    torch.library.opcheck(torch.ops.sgl_kernel.fast_hadamard_transform_12N.default, (torch.ones(2), 1.0), test_utils="test_schema")
    raises(Exception, "register_fake", torch.compile(lambda x: torch.ops.sgl_kernel.fast_hadamard_transform_12N(x, 3.0), fullgraph=True, backend="eager"), torch.ones(2))


def test_old_code_has_its_fake_kernel():
    torch.library.register_fake("sgl_kernel::fast_hadamard_transform_12N")(lambda x, scale: torch.empty_like(x))
    f = torch.compile(lambda x: torch.ops.sgl_kernel.fast_hadamard_transform_12N(x, 3.0) + 1, fullgraph=True, backend="eager")
    assert torch.equal(f(torch.ones(2)), torch.full((2,), 4.0))


def test_a_route_that_ends_nowhere():
    """The catalog says that this release has the function, but it cannot be imported."""
    e = raises(RuntimeError, "torch.ops.sgl_kernel.awq_marlin_repack is gone", lambda: torch.ops.sgl_kernel.awq_marlin_repack(torch.ones(1), 1, 1, 1))
    assert "sglang.kernels.ops.quantization.awq_marlin_repack.awq_marlin_repack cannot be imported: ModuleNotFoundError" in str(e), e


def test_another_order_is_no_route():
    assert sgl_kernel.top_k_mask_logits
    raises(RuntimeError, "torch.ops.sgl_kernel.top_k_mask_logits is gone", lambda: torch.ops.sgl_kernel.top_k_mask_logits(torch.ones(1), torch.ones(1), None, 3))
    raises(RuntimeError, "topk is the third parameter", lambda: torch.ops.sgl_kernel.moe_fused_gate(torch.ones(1), torch.ones(1), 1, 1, 1, 0, 1.0, False))


def test_stages():
    import sgl_kernel_compat

    sgl_kernel_compat.set_stage("hadamard_transform_12n", "error")
    raises(RuntimeError, "its stage is error (set_stage, ", lambda: torch.ops.sgl_kernel.fast_hadamard_transform_12N(torch.ones(1), 1.0))
