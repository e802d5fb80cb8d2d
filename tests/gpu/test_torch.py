#!/usr/bin/env python3
"""The deleted operators and C++ functions on CUDA tensors of the torch that is installed here, against float64.

The part through C++ needs g++ and torch's headers and is skipped without them; all of it needs torch and a GPU."""
import ctypes, os, pathlib, shutil, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from suite import Skip, cuda_torch, main

BUILD = pathlib.Path(os.environ["BUILD_DIR"])
LIB = BUILD / "lib"
CONSUMER = pathlib.Path(__file__).resolve().parents[1] / "shim" / "torch_consumer.cc"
TOKENS = range(1, 17)
ROUTER = ((256, 7168), (384, 7168))
FUSED_A = (2112, 7168)
torch = cuda_torch()

compat = ctypes.CDLL(str(LIB / "libsgl_kernel_compat.so"))


def weights(n, k, device="cuda"):
    return torch.randn(n, k, dtype=torch.bfloat16, device=device)


def assert_close(output, want):
    """Sums of 7168 products of normal values, 85 in size, are off by up to 2e-4 in float32 and by up to 9e-4 where tensor
    cores add; bfloat16 rounds to 8 bits on top."""
    rounding, sums = (2.0 ** -8, 1e-3) if output.dtype == torch.bfloat16 else (0.0, 2.5e-4)
    error = (output.double() - want).abs()
    assert (error <= want.abs() * rounding + sums).all(), f"off by {error.max().item()}"


def assert_raises(part, f, *args):
    try:
        f(*args)
    except RuntimeError as e:
        assert part in str(e), f"{part!r} not in {e}"
        return str(e)
    raise AssertionError("no RuntimeError")


def new(tokens, n, dtype=torch.float32, device="cuda"):
    return torch.full((tokens, n), float("nan"), dtype=dtype, device=device)


def stderr_of(f):
    with tempfile.TemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            f()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        file.seek(0)
        return file.read().decode()


def router(output, a, w):
    torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w)


def fused_a(output, a, w):
    torch.ops.sgl_kernel.dsv3_fused_a_gemm(output, a, w.t())


def test_registers():
    message = ctypes.create_string_buffer(1000)
    for _ in range(2):
        assert compat.sgl_compat_register_ops(message, len(message)) == 0, message.value
    for name in (b"bmm_fp8", b"dsv3_router_gemm", b"dsv3_fused_a_gemm"):
        assert compat.sgl_compat_get_op_state(name) == 1, name


def test_warns_once():
    a, w = weights(1, 7168), weights(256, 7168)
    text = stderr_of(lambda: [router(new(1, 256), a, w) for _ in range(3)])
    assert text.count("\n") == 1 and "torch.ops.sgl_kernel.dsv3_router_gemm is deprecated" in text, text
    compat.sgl_compat_set_warnings(0, None, 0)


def test_router():
    for n, k in ROUTER:
        w = weights(n, k)
        for tokens in TOKENS:
            a = weights(tokens, k)
            want = a.double() @ w.double().t()
            for dtype in (torch.float32, torch.bfloat16):
                output = new(tokens, n, dtype)
                router(output, a, w)
                assert_close(output, want)


def test_fused_a():
    n, k = FUSED_A
    w = weights(n, k)
    for tokens in TOKENS:
        a = weights(tokens, k)
        output = new(tokens, n, torch.bfloat16)
        fused_a(output, a, w)
        assert_close(output, a.double() @ w.double().t())


def bmm_operands(batch, m, n, k, device="cuda"):
    """(A, B, D, A_scale, B_scale, workspace_buffer, cublas_handle); the scales are slices of a buffer of many."""
    a = torch.randn(batch, m, k, device=device).to(torch.float8_e4m3fn)
    b = torch.randn(batch, n, k, device=device).to(torch.float8_e4m3fn).transpose(1, 2)
    buffer = torch.rand(8, device=device) + 0.5
    output = torch.full((batch, m, n), float("nan"), dtype=torch.bfloat16, device=device)
    return a, b, output, buffer[1:2], buffer[2], torch.empty(32 << 20, dtype=torch.uint8, device=device), 0


def assert_bmm_close(a, b, output, a_scale, b_scale, *_):
    """The norm of the error: the fast accumulation keeps it below 1 %; the deleted test asked for a cosine of 0.99."""
    want = torch.bmm(a.double(), b.double()) * a_scale.double() * b_scale.double()
    assert (output.double() - want).norm() <= 0.01 * want.norm(), f"off by {((output.double() - want).norm() / want.norm()).item()}"


def bmm_calls(op):
    for shape in ((16, 1, 512, 128), (16, 48, 80, 64), (2, 5, 24, 64)):
        everything = bmm_operands(*shape)
        op(*everything)
        assert_bmm_close(*everything)
    a, b, output, a_scale, b_scale, workspace, handle = everything
    assert_raises("bmm_fp8: output must be bfloat16 or float16", op, a, b, output.float(), a_scale, b_scale, workspace, handle)
    assert_raises("bmm_fp8: B must be packed", op, a, b.contiguous(), output, a_scale, b_scale, workspace, handle)
    assert_raises("bmm_fp8: A and B must not both be float8_e5m2", op, *(t.to(torch.float8_e5m2) for t in (a, b)), output, a_scale, b_scale, workspace, handle)
    assert_raises("workspace is too small for a copy", op, a, b, output, a_scale, b_scale, workspace[:0], handle)
    op(a, b, output.zero_(), a_scale.clone(), b_scale.clone(), workspace[:0], handle)
    assert_bmm_close(*everything)


def test_bmm_fp8():
    bmm_calls(torch.ops.sgl_kernel.bmm_fp8)


def test_bmm_fp8_on_the_second_device():
    if torch.cuda.device_count() < 2:
        raise Skip("one GPU only")
    with torch.cuda.device(0):
        everything = bmm_operands(4, 9, 64, 128, "cuda:1")
        torch.ops.sgl_kernel.bmm_fp8(*everything)
        torch.cuda.synchronize(1)
        assert_bmm_close(*everything)
        assert torch.cuda.current_device() == 0
        elsewhere = [*everything[:5], everything[5].to("cuda:0"), 0]
        assert_raises("workspace_buffer must be on cuda:1 like A", torch.ops.sgl_kernel.bmm_fp8, *elsewhere)


def test_zero_tokens():
    router(new(0, 256), weights(0, 7168), weights(256, 7168))
    fused_a(new(0, 2112, torch.bfloat16), weights(0, 7168), weights(2112, 7168))
    torch.cuda.synchronize()


def on_a_stream(device):
    """The stream's earlier work decides the operand: a kernel on another stream would see the old one."""
    stream = torch.cuda.Stream(device)
    for op, n, dtype in ((router, 256, torch.float32), (fused_a, 2112, torch.bfloat16)):
        w, a, late = weights(n, 7168, device), torch.zeros(4, 7168, dtype=torch.bfloat16, device=device), weights(4, 7168, device)
        output = new(4, n, dtype, device)
        op(output, a, w)  # compiled and loaded before it counts
        torch.cuda.synchronize(device)
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100_000_000)  # clock cycles, tens of milliseconds
            a.copy_(late)
            op(output, a, w)
        stream.synchronize()
        assert_close(output, late.double() @ w.double().t())


def test_stream():
    on_a_stream(torch.device("cuda", torch.cuda.current_device()))


def test_second_device():
    if torch.cuda.device_count() < 2:
        raise Skip("one GPU only")
    with torch.cuda.device(0):  # the tensors' device counts, not the current one
        for op, n, dtype in ((router, 256, torch.float32), (fused_a, 2112, torch.bfloat16)):
            a, w, output = weights(3, 7168, "cuda:1"), weights(n, 7168, "cuda:1"), new(3, n, dtype, "cuda:1")
            op(output, a, w)
            torch.cuda.synchronize(1)
            assert_close(output, a.double() @ w.double().t())
            assert torch.cuda.current_device() == 0
            assert_raises("dsv3_", op, output, a.to("cuda:0"), w)
    with torch.cuda.device(1):
        on_a_stream(torch.device("cuda", 1))


def test_graph():
    for op, n, dtype in ((router, 384, torch.float32), (fused_a, 2112, torch.bfloat16)):
        for tokens in (1, 9):
            w, a, output = weights(n, 7168), weights(tokens, 7168), new(tokens, n, dtype)
            op(output, a, w)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                op(output, a, w)
            for _ in range(3):
                a.copy_(torch.randn(tokens, 7168))
                output.fill_(float("nan"))
                graph.replay()
                torch.cuda.synchronize()
                assert_close(output, a.double() @ w.double().t())


def test_compile():
    @torch.compile(fullgraph=True, backend="eager")
    def layer(a, w):
        output = torch.empty(a.shape[0], w.shape[0], device=a.device)
        torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w)
        return output + 1

    w = weights(256, 7168)
    for tokens in (2, 7):
        a = weights(tokens, 7168)
        assert_close(layer(a, w), a.double() @ w.double().t() + 1)


def faults(op):
    a, w = weights(2, 7168), weights(256, 7168)
    output = torch.zeros(2, 256, device="cuda")
    wrong = [
        (output, a.float(), w),
        (output, a, w.float()),
        (output.int(), a, w),
        (output, a[:, :7000], w),
        (output[:1], a, w),
        (output[0], a, w),
        (output.cpu(), a, w),
        (output, a.cpu(), w),
        (output, torch.cat([a, a], 1)[:, :7168], w),
        (torch.zeros(100, 256, device="cuda"), weights(100, 7168), w),
    ]
    for arguments in wrong:
        assert_raises("dsv3_router_gemm", op, *arguments)
    assert not output.any()
    op(output, a, w)  # and the next good call works
    assert_close(output, a.double() @ w.double().t())


def test_errors():
    faults(router)
    assert_raises("dsv3_fused_a_gemm", torch.ops.sgl_kernel.dsv3_fused_a_gemm, new(2, 2112, torch.bfloat16), weights(2, 7168), weights(7168, 2112))


def test_keeps_no_memory():
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(20):
        a, w, output = weights(4, 7168), weights(256, 7168), new(4, 256)
        router(output, a, w)
        assert_raises("dsv3_router_gemm", router, output, a[:, :7000], w)
    del a, w, output
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before


def test_cxx_function():
    from torch.utils import cpp_extension

    compiler = shutil.which(os.environ.get("CXX", "g++"))
    includes = [p for p in cpp_extension.include_paths() if os.path.exists(os.path.join(p, "ATen"))]
    if not compiler or not includes:
        raise Skip("no C++ compiler here" if not compiler else "this torch has no headers")
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "consumer.so")
        torch_lib = os.path.join(os.path.dirname(torch.__file__), "lib")
        command = [compiler, "-std=c++20", "-O1", "-w", "-fPIC", "-shared", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
                   *(f"-isystem{p}" for p in includes), "-o", target, str(CONSUMER), f"-L{LIB}", "-lsgl_kernel_compat", f"-L{torch_lib}", "-ltorch_cpu",
                   "-lc10", f"-Wl,-rpath,{LIB}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout
        torch.ops.load_library(target)
    # The consumer's operators have no kernel for a device of their own: they call the function with what they get.
    for tokens in TOKENS:
        w, a, output = weights(256, 7168), weights(tokens, 7168), new(tokens, 256)
        torch.ops.consumer.router(output, a, w)
        assert_close(output, a.double() @ w.double().t())
    n, k = FUSED_A
    w, a, output = weights(n, k), weights(5, k), new(5, n, torch.bfloat16)
    torch.ops.consumer.fused_a(output, a, w.t())
    assert_close(output, a.double() @ w.double().t())
    bmm_calls(torch.ops.consumer.bmm_fp8)
    before = torch.ops.consumer.use_count(a)
    faults(torch.ops.consumer.router)
    for _ in range(5):
        torch.ops.consumer.fused_a(output, a, w.t())
        torch.ops.sgl_kernel.dsv3_fused_a_gemm(output, a, w.t())
    assert torch.ops.consumer.use_count(a) == before
    assert "dsv3_router_gemm" in torch.ops.consumer.router_error(output, a.float(), w)


torch.manual_seed(11)
main(globals())
