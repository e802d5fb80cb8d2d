#!/usr/bin/env python3
"""The small operators on CUDA tensors against torch: every case of native_cases.py, streams, graphs, devices, refusals.

Needs torch, a GPU, and the wheel in BUILD_DIR (make wheel). The first calls compile; the cache is empty."""
import os, pathlib, sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1])]
import native_package
from native_cases import ALL, CXX, OPERATORS, cases
from suite import Skip, cuda_torch, main, skip_all

torch = cuda_torch()
jit = native_package.load(os.environ["BUILD_DIR"])
if jit is None:
    skip_all("no wheel: make wheel")


def raises(part, f, *args):
    try:
        f(*args)
    except RuntimeError as e:
        assert part in str(e), f"{part!r} not in {e}"
        return
    raise AssertionError("no RuntimeError")


def test_first_use_in_a_capture():
    for name in ALL:
        case = next(cases(torch, name, "cuda"))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = getattr(jit, name)(*case.args)
        for _ in range(2):
            graph.replay()
        torch.cuda.synchronize()
        case.check(result)


def test_functions():
    for name in ALL:
        for case in cases(torch, name, "cuda"):
            try:
                case.run(getattr(jit, name))
            except Exception as e:
                raise AssertionError(f"{name} {case.label}: {e}") from e


def test_operators():
    for name in sorted(CXX):
        for case in cases(torch, name, "cuda"):
            case.run(getattr(torch.ops.sgl_kernel, OPERATORS.get(name, name)), *case.more)


def test_the_current_stream():
    """What the operator reads is written late on its stream, behind a long wait."""
    for name in ALL:
        case = list(cases(torch, name, "cuda"))[1]
        torch.cuda.synchronize()
        late = [(a, a.clone()) for a in case.args if torch.is_tensor(a)]
        for a, _ in late:
            a.copy_(torch.zeros_like(a))
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()) as _:
            torch.cuda._sleep(20_000_000)  # some 10 ms
            for a, value in late:
                a.copy_(value)
            result = getattr(jit, name)(*case.args)
            torch.cuda.current_stream().synchronize()
        case.check(result)


def test_another_device():
    if torch.cuda.device_count() < 2:
        raise Skip("one GPU")
    for name in ALL:
        for case in list(cases(torch, name, "cuda:1"))[:4]:
            case.run(getattr(jit, name))
    assert torch.cuda.current_device() == 0


def test_gradients_are_not_recorded():
    x = torch.ones(32, device="cuda", requires_grad=True)
    output, scale = torch.zeros(32, dtype=torch.uint8, device="cuda"), torch.zeros(1, device="cuda")
    jit.sgl_per_tensor_quant_fp8(x, output, scale, False)
    assert (output == 0x7E).all() and not output.requires_grad


def test_refusals():
    x = torch.ones(4, 4)
    raises("must be on a CUDA device, got CPU tensors", jit.sgl_per_tensor_quant_fp8, x, x.to(torch.uint8), torch.zeros(1), False)
    c = x.cuda()
    raises("output_q must be on cuda:0 like input, got the CPU", jit.sgl_per_tensor_quant_fp8, c, x.to(torch.uint8), torch.zeros(1).cuda(), False)
    raises("input must be contiguous", jit.sgl_per_tensor_quant_fp8, c.t(), c.to(torch.uint8), torch.zeros(1).cuda(), False)


def test_empty():
    e = torch.empty(0, 4, 16, dtype=torch.bfloat16, device="cuda")
    cache = torch.full((3, 4, 16), 7, dtype=torch.uint8, device="cuda")
    one = torch.ones(1, device="cuda")
    jit.downcast_fp8(e, e, cache, cache.clone(), one, one, torch.empty(0, dtype=torch.int64, device="cuda"))
    jit.sgl_per_tensor_quant_fp8(e, e.to(torch.uint8), one, False)
    none = torch.empty(0, dtype=torch.int32, device="cuda")
    jit.set_kv_buffer_kernel(cache, cache.clone(), none, e.to(torch.uint8), e.to(torch.uint8))
    jit.merge_state(e, e[..., 0].float(), e, e[..., 0].float())
    assert jit.hadamard_transform(e).shape == e.shape
    jit.segment_packbits(none.bool(), torch.zeros(1, dtype=torch.int32, device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda"), cache, 0)
    assert (cache == 7).all() and one.item() == 1


def test_slots_that_there_are_not():
    k = torch.ones(3, 1, 16, dtype=torch.float16, device="cuda")
    cache = torch.full((6, 1, 16), 7, dtype=torch.uint8, device="cuda")
    one = torch.ones(1, device="cuda")
    jit.downcast_fp8(k, k, cache[1:3], cache[4:6], one, one, torch.tensor([-1, 2, 1], device="cuda"))
    torch.cuda.synchronize()
    assert cache[:, 0, 0].tolist() == [7, 7, 0x38, 7, 7, 0x38]


if __name__ == "__main__":
    main(globals())
