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
                        want = torch.tensor([0.37]) if is_static else x.abs().max().float().cpu().reshape(1) / 448  # on CUDA torch multiplies by 1 / 448
                        want = want.to(x.device)
                        same(torch, scale, want, "output_s")
                        if want.item() > 0:
                            same(torch, output, (x.float() * (1 / want)).clamp(-448, 448).to(torch.float8_e4m3fn))
                    yield Case(f"{shape} {dtype} static {is_static} slice {slice}", (x, output, scale, is_static), check)


def close(torch, have, want, dtype, slack):
    """Of a float64 product: a rounding of dtype, and `slack` beside."""
    step = {torch.float32: 2.0**-23, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}[dtype]
    error = (have.double() - want).abs()
    allowed = want.abs() * step + slack + (2.0**-24 if dtype == torch.float16 else 0)
    assert have.dtype == dtype and have.shape == want.shape, f"{have.dtype} {tuple(have.shape)}"
    assert (error <= allowed).all(), f"off by {error.max().item()}, {(error / allowed).max().item():.2f} of what is allowed"


def merge_state(torch, device):
    for tokens, heads, dim in ((1, 1, 64), (5, 3, 128), (33, 8, 128), (7, 2, 80), (4, 5, 7), (9, 1, 512), (200, 16, 192)):
        for dtype in (torch.bfloat16, torch.float16):
            for where in ("beside", "in place"):
                v_a, v_b = (torch.randn(tokens, heads, dim, device=device).to(dtype) for _ in range(2))
                s_a, s_b = (torch.randn(tokens, heads, device=device) * 8 for _ in range(2))
                s_a[0, 0], v_a[0, 0] = float("-inf"), 0
                s_b[-1, -1], v_b[-1, -1] = (float("-inf") if tokens * heads > 1 else 3.0), 0
                a, b, sa, sb = (t.double() for t in (v_a, v_b, s_a, s_b))
                s = torch.log2(torch.exp2(sa) + torch.exp2(sb))
                want = a * torch.exp2(sa - s)[..., None] + b * torch.exp2(sb - s)[..., None]
                outputs = (torch.empty_like(v_a), torch.empty_like(s_a)) if where == "beside" else (v_b, s_a)

                def check(result, outputs=outputs, want=want, s=s, dtype=dtype):
                    for given, returned in zip(outputs, result or ()):
                        assert returned is given
                    close(torch, outputs[0], want, dtype, 4e-6)
                    close(torch, outputs[1], s, torch.float32, 4e-6)
                yield Case(f"{tokens}x{heads}x{dim} {dtype} {where}", (v_a, s_a, v_b, s_b, *outputs), check)


def hadamard_transform(torch, device):
    shapes = [(1, 1), (3, 2), (2, 3, 8), (5, 16), (4, 7), (3, 32), (7, 64), (130, 128), (3, 137), (2, 4, 256), (9, 512), (2, 1000), (3, 1024), (5, 4096),
              (2, 8192), (140, 4096), (1, 16384), (1, 20000), (2, 32768)]
    for shape in shapes:
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            for layout in ("contiguous", "rows apart", "transposed"):
                if layout != "contiguous" and (len(shape) != 2 or shape[1] > 4096):
                    continue
                rows, columns = shape[0], shape[-1]
                if layout == "contiguous":
                    x = torch.randn(shape, device=device).to(dtype)
                elif layout == "rows apart":
                    x = torch.randn(rows, columns + 3, device=device).to(dtype)[:, :columns]
                else:
                    x = torch.randn(columns, rows, device=device).to(dtype).t()
                scale = 0.5 / columns**0.5
                size = 1 << (columns - 1).bit_length()
                padded = torch.nn.functional.pad(x.double(), (0, size - columns)).cpu()
                want = padded  # stage by stage
                step = 1
                while step < size:
                    pairs = want.reshape(*want.shape[:-1], size // (2 * step), 2, step)
                    want = torch.stack((pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]), -2).reshape(want.shape)
                    step *= 2
                want = (want[..., :columns] * float(torch.tensor(scale))).to(device)

                def check(result, want=want, dtype=dtype, columns=columns):
                    assert result.is_contiguous()
                    close(torch, result, want, dtype, 2e-6)
                yield Case(f"{shape} {dtype} {layout}", (x, scale), check)


def segment_packbits(torch, device):
    for lengths in ((8,), (1, 0, 7, 9), (64, 3, 1000, 0, 8, 17), tuple(range(70)), (100003,), (16,) * 300):
        for dtype in (torch.bool, torch.uint8):
            x = (torch.rand(sum(lengths), device=device) < 0.5).to(dtype) * (1 if dtype == torch.bool else 3)
            x = x.to(dtype)
            starts = torch.tensor([0, *lengths]).cumsum(0)
            places = torch.tensor([0, *((n + 7) // 8 for n in lengths)]).cumsum(0)
            y = torch.full((int(places[-1]) + 2,), 7, dtype=torch.uint8, device=device)
            want = y.clone()
            for s, n in enumerate(lengths):
                if n:
                    bits = torch.nn.functional.pad(x[starts[s] : starts[s] + n].bool(), (0, -n % 8)).view(-1, 8)
                    want[places[s] : places[s + 1]] = (bits * 2 ** torch.arange(8, device=device)).sum(1).to(torch.uint8)

            def check(result, y=y, want=want):
                assert result is None
                same(torch, y, want, "y")
            stream = torch.cuda.current_stream(device).cuda_stream if "cuda" in str(device) else 0
            yield Case(f"{len(lengths)} segments {dtype}", (x, starts.int().to(device), places.int().to(device), y, len(lengths)), check, (stream,))


def set_kv_buffer_kernel(torch, device):
    for tokens, slots, row, dtype in ((1, 1, (8, 128), torch.bfloat16), (5, 9, (2, 64), torch.float16), (33, 64, (576,), torch.bfloat16),
                                      (7, 20, (3, 40), torch.float32), (64, 300, (8, 128), torch.float8_e4m3fn), (4, 5, (4, 6), torch.bfloat16)):
        for loc_dtype in (torch.int32, torch.int64):
            for layout in ("contiguous", "slices", "flat"):
                make = lambda count, row=row, dtype=dtype: torch.randint(0, 256, (count, *row[:-1], row[-1] * dtype.itemsize), dtype=torch.uint8, device=device).view(dtype)
                if layout == "slices":  # k and v beside each other, in the inputs and in the cache
                    k, v = (t.squeeze(1) for t in make(2 * tokens).view(tokens, 2, *row).split(1, 1))
                    k_cache, v_cache = (t.squeeze(1) for t in make(2 * slots).view(slots, 2, *row).split(1, 1))
                else:
                    k, v, k_cache, v_cache = make(tokens), make(tokens), make(slots), make(slots)
                if layout == "flat":
                    k, v = k.view(tokens, -1), v.view(tokens, -1)
                loc = torch.randperm(slots, device=device)[:tokens]
                want = [t.contiguous().view(torch.uint8).clone() for t in (k_cache, v_cache)]
                for w, x in zip(want, (k, v)):
                    w[loc] = x.contiguous().view(torch.uint8).reshape(tokens, *w.shape[1:])

                def check(result, want=want, caches=(k_cache, v_cache)):
                    assert result is None
                    for w, cache in zip(want, caches):
                        same(torch, cache.contiguous().view(torch.uint8), w, "cache")
                yield Case(f"{tokens} of {slots} x {row} {dtype} {loc_dtype} {layout}", (k_cache, v_cache, loc.to(loc_dtype), k, v), check)


ALL = {f.__name__: f for f in (downcast_fp8, hadamard_transform, merge_state, segment_packbits, set_kv_buffer_kernel, sgl_per_tensor_quant_fp8)}
OPERATORS = {"hadamard_transform": "fast_hadamard_transform", "set_kv_buffer_kernel": "store_kv_cache"}  # where the deleted ones have another name
CXX = set(ALL) - {"hadamard_transform"}  # which have a C++ function that is served


def cases(torch, name, device):
    torch.manual_seed(1)
    return ALL[name](torch, device)
