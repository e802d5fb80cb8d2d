"""Calls of the operators with one kernel for every shape, and what they have to give: by torch alone, exact or in float64.

For tests on the CPU reference (python/scenario_native.py, shim/real_torch.py) and on CUDA (gpu/test_native.py)."""
import dataclasses, typing


@dataclasses.dataclass
class Case:
    label: str
    args: tuple  # of the Python function
    check: typing.Callable  # of its result: raises AssertionError
    more: tuple = ()  # what the operator and the C++ function take behind them

    def run(self, function, *more):
        self.check(function(*self.args, *more))


def same(torch, have, want, what="output"):
    """The same to the bit; as float32 where bits say too little to a reader."""
    assert have.dtype == want.dtype and have.shape == want.shape, f"{what}: {have.dtype} {tuple(have.shape)}, not {want.dtype} {tuple(want.shape)}"
    a, b = have.contiguous().view(torch.uint8), want.contiguous().view(torch.uint8)
    if not torch.equal(a, b):
        size = max(have.element_size(), 1)
        at = int((a != b).flatten().nonzero()[0]) // size
        wrong = int((a != b).reshape(-1, size).any(1).sum())
        raise AssertionError(f"{what}: {wrong} of {have.numel()} wrong, first [{at}]: {have.float().flatten()[at]}, not {want.float().flatten()[at]}")


def values(torch, shape, dtype, device, most=300.0):
    """Of all sizes up to `most`, and a few zeros."""
    x = torch.randn(shape, device=device) * torch.exp2(torch.rand(shape, device=device) * 16 - 8)
    return x.clamp(-most, most).masked_fill(torch.rand(shape, device=device) < 0.01, 0).to(dtype)


def downcast_fp8(torch, device):
    shapes = [(1, 1, 8, 1), (5, 2, 64, 9), (17, 3, 40, 40), (3, 1, 5, 4), (64, 8, 128, 64), (130, 1, 576, 200)]
    for tokens, heads, dim, slots in shapes:
        for dtype in (torch.bfloat16, torch.float16):
            for out_dtype, mult, offset in ((torch.float8_e4m3fn, 1, 0), (torch.uint8, 2, 1)):
                k, v = (values(torch, (tokens, heads, dim), dtype, device, 4000.0) for _ in range(2))
                k.view(-1)[0], v.view(-1)[-1] = float("nan"), float("-inf")
                outputs = [torch.full((slots * mult, heads, dim), 7, dtype=torch.uint8, device=device).view(out_dtype) for _ in range(2)]
                scales = [torch.tensor([scale], device=device) for scale in (1.7, 0.031)]
                loc = torch.randperm(slots, device=device)[:tokens]

                def check(result, k=k, v=v, outputs=outputs, scales=scales, loc=loc, dtype=dtype, mult=mult, offset=offset):
                    assert result is None
                    for x, output, scale in zip((k, v), outputs, scales):
                        want = torch.full_like(output.view(torch.uint8), 7)
                        inverse = torch.ones((), dtype=dtype, device=x.device) / scale.to(dtype)
                        want[loc * mult + offset] = (x * inverse).clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8)
                        nan = (want & 0x7F) == 0x7F  # which has a sign, or not
                        same(torch, output.view(torch.uint8).masked_fill(nan, 0x7F), want.masked_fill(nan, 0x7F))
                yield Case(f"{tokens}x{heads}x{dim} {dtype} {out_dtype}", (k, v, *outputs, *scales, loc, mult, offset), check)


def sgl_per_tensor_quant_fp8(torch, device):
    for shape in ((1,), (3, 5), (16, 16), (7, 24), (130, 1024), (2, 3, 333), (1000, 777)):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            for is_static in (False, True):
                for slice in (0, 1):  # from the second element on: not aligned
                    count = slice + torch.Size(shape).numel()
                    x = values(torch, (count,), dtype, device)[slice:].view(shape)
                    output = torch.full((count,), 7, dtype=torch.uint8, device=device).view(torch.float8_e4m3fn)[slice:].view(shape)
                    scale = torch.full((1,), 0.37 if is_static else 0.0, device=device)

                    def check(result, x=x, output=output, scale=scale, is_static=is_static):
                        assert result is None
                        want = torch.tensor([0.37], device=x.device) if is_static else x.abs().max().float().reshape(1) / 448
                        same(torch, scale, want, "output_s")
                        if want.item() > 0:
                            same(torch, output, (x.float() * (1 / want)).clamp(-448, 448).to(torch.float8_e4m3fn))
                    yield Case(f"{shape} {dtype} static {is_static} slice {slice}", (x, output, scale, is_static), check)


ALL = {f.__name__: f for f in (downcast_fp8, sgl_per_tensor_quant_fp8)}
OPERATORS = {}  # where the deleted operator and C++ function have another name


def cases(torch, name, device):
    torch.manual_seed(1)
    return ALL[name](torch, device)
