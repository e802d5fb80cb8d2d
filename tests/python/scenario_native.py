"""The small operators on the CPU reference against torch: by their old names, as operators, in compiled code."""
import torch

import sgl_kernel
import sgl_kernel_jit
from checks import raises
from native_cases import ALL, OPERATORS, cases


def test_old_names():
    for name in ALL:
        function = getattr(sgl_kernel, name)
        assert function is getattr(sgl_kernel, name)
        for case in cases(torch, name, "cpu"):
            case.run(function)


def test_supported_names():
    for name in ALL:
        for case in cases(torch, name, "cpu"):
            case.run(getattr(sgl_kernel_jit, name))


def test_operators():
    for name in ALL:
        for case in cases(torch, name, "cpu"):
            case.run(getattr(torch.ops.sgl_kernel, OPERATORS.get(name, name)), *case.more)


def test_compiled():
    """By functions that are traced: what they write is known to torch.compile."""
    for name in ALL:
        function = torch.compile(getattr(sgl_kernel_jit, name), backend="aot_eager", fullgraph=True)
        for case in list(cases(torch, name, "cpu"))[::7]:
            case.run(function)
            torch._dynamo.reset()


def test_errors_name_the_argument():
    x = torch.ones(4, 4)
    e = raises(RuntimeError, "sgl_per_tensor_quant_fp8: output_q must be float8_e4m3fn or uint8, got float32", sgl_kernel.sgl_per_tensor_quant_fp8, x, x, x, True)
    assert type(e) is RuntimeError
    fp8 = x.to(torch.float8_e4m3fn)
    raises(RuntimeError, "input must be contiguous, got strides (1, 4)", sgl_kernel.sgl_per_tensor_quant_fp8, x.t(), fp8, torch.zeros(1), False)
    raises(RuntimeError, "downcast_fp8: loc must be int64, got int32", sgl_kernel.downcast_fp8, *[torch.ones(2, 2, 8, dtype=torch.bfloat16)] * 2,
           *[torch.zeros(2, 2, 8, dtype=torch.uint8)] * 2, *[torch.ones(1)] * 2, torch.arange(2, dtype=torch.int32))


def test_old_defaults_of_merge_state():
    a, b, s = torch.zeros(2, 1, 8, dtype=torch.float16), torch.ones(2, 1, 8, dtype=torch.float16), torch.zeros(2, 1, dtype=torch.float64)
    v, merged = sgl_kernel.merge_state(a, s, b, s + 1)
    assert v.dtype == torch.float16 and merged.dtype == torch.float32 and torch.allclose(v.float(), torch.tensor(2 / 3), atol=1e-3)
    assert torch.allclose(merged, torch.log2(torch.tensor(3.0)))


def test_what_the_kernel_refuses_torch_does():
    cache = [torch.zeros(4, 3, dtype=torch.int16) for _ in range(2)]  # an unknown dtype, and rows of 6 bytes
    loc = torch.tensor([2, 0])
    for fallback in (False, True):
        k = torch.randint(0, 100, (2, 3), dtype=torch.int16)
        sgl_kernel.set_kv_buffer_kernel(*cache, loc, k, k + 1, fallback)
        assert torch.equal(cache[0][loc], k) and torch.equal(cache[1][loc], k + 1)
    raises(RuntimeError, "set_kv_buffer_kernel: k_cache must be of a dtype that is known here", torch.ops.sgl_kernel.store_kv_cache, *cache, loc, k, k)
    cache = [torch.zeros(4, 4) for _ in range(2)]
    raises(RuntimeError, "loc[1] must be one of the 4 slots of k_cache, got 4", torch.ops.sgl_kernel.store_kv_cache, *cache, torch.tensor([0, 4]), cache[0][:2], cache[1][:2])


def test_the_hadamard_operator_is_there():
    assert hasattr(torch.ops.sgl_kernel, "fast_hadamard_transform")
    assert str(torch.ops.sgl_kernel.fast_hadamard_transform.default._schema) == "sgl_kernel::fast_hadamard_transform(Tensor x, float scale) -> Tensor"
    raises(RuntimeError, "hadamard_transform: the last size of x must be at most 32768, got 32769", sgl_kernel.hadamard_transform, torch.ones(32769))


def test_default_arguments():
    assert torch.equal(sgl_kernel.hadamard_transform(torch.tensor([1.0, 2, 3, 4])), torch.tensor([10.0, -2, -4, 0]))
    k = torch.ones(2, 1, 16, dtype=torch.float16)
    outputs = [torch.zeros(2, 1, 16, dtype=torch.uint8) for _ in range(2)]
    sgl_kernel.downcast_fp8(k, 2 * k, *outputs, torch.ones(1), torch.ones(1), torch.tensor([1, 0]))
    assert (outputs[0] == 0x38).all() and (outputs[1] == 0x40).all()


def test_gradients_are_not_recorded():
    x = torch.ones(8, requires_grad=True)
    output, scale = torch.zeros(8, dtype=torch.float8_e4m3fn), torch.zeros(1)
    sgl_kernel.sgl_per_tensor_quant_fp8(x, output, scale, False)
    assert not output.requires_grad and not scale.requires_grad and x.grad is None
