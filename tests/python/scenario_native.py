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


def test_default_arguments():
    k = torch.ones(2, 1, 16, dtype=torch.float16)
    outputs = [torch.zeros(2, 1, 16, dtype=torch.uint8) for _ in range(2)]
    sgl_kernel.downcast_fp8(k, 2 * k, *outputs, torch.ones(1), torch.ones(1), torch.tensor([1, 0]))
    assert (outputs[0] == 0x38).all() and (outputs[1] == 0x40).all()


def test_gradients_are_not_recorded():
    x = torch.ones(8, requires_grad=True)
    output, scale = torch.zeros(8, dtype=torch.float8_e4m3fn), torch.zeros(1)
    sgl_kernel.sgl_per_tensor_quant_fp8(x, output, scale, False)
    assert not output.requires_grad and not scale.requires_grad and x.grad is None
