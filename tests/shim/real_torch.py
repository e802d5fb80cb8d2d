"""The checks of test_real_torch.py that run inside a real torch.

usage: real_torch.py LIB_DIR CONSUMER_SO OLD_WHEEL_SO HEADER_SO CUDA_SO SCENARIO

One process for each scenario, since torch keeps what was registered. Closing line: "SCENARIO: N passed, N failed"."""
import ctypes, os, sys, tempfile, traceback

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from native_cases import ALL, CXX, OPERATORS, cases

LIB, CONSUMER, OLD_WHEEL, HEADER, CUDA, SCENARIO = sys.argv[1:]
REGISTERED, ALREADY_DEFINED = 1, 2  # sgl_compat_op_state
OK, NO_TORCH = 0, 2  # sgl_compat_status
SHOWN, RAISE = 0, 1  # sgl_compat_warning_action
ROUTER = ((256, 7168), (384, 7168))
FUSED_A = ((2112, 7168),)
SCHEMAS = {  # as the old wheels had them
    "bmm_fp8": "(Tensor A, Tensor B, Tensor($0! -> ) D, Tensor A_scale, Tensor B_scale, Tensor workspace_buffer, int cublas_handle)",
    "downcast_fp8": "(Tensor k, Tensor v, Tensor k_out, Tensor v_out, Tensor k_scale, Tensor v_scale, Tensor loc, int mult, int offset)",
    "dsv3_fused_a_gemm": "(Tensor($0! -> ) output, Tensor mat_a, Tensor mat_b)",
    "dsv3_router_gemm": "(Tensor($0! -> ) output, Tensor mat_a, Tensor mat_b)",
    "merge_state": "(Tensor v_a, Tensor s_a, Tensor v_b, Tensor s_b, Tensor($0! -> ) v_merged, Tensor($1! -> ) s_merged)",
    "segment_packbits": "(Tensor x, Tensor input_indptr, Tensor output_indptr, Tensor($0! -> ) y, int batch_size, int cuda_stream)",
    "store_kv_cache": "(Tensor k_cache, Tensor v_cache, Tensor out_loc, Tensor k, Tensor v)",
    "sgl_per_tensor_quant_fp8": "(Tensor input, Tensor($0! -> ) output_q, Tensor($1! -> ) output_s, bool is_static)",
}
SERVED = ["bmm_fp8", "downcast_fp8", "dsv3_fused_a_gemm", "dsv3_router_gemm", "merge_state", "sgl_per_tensor_quant_fp8", "segment_packbits", "store_kv_cache"]


def load():
    library = ctypes.CDLL(os.path.join(LIB, "libsgl_kernel_compat.so"))
    library.sgl_compat_op_name.restype = ctypes.c_char_p
    return library


def register(library):
    message = ctypes.create_string_buffer(1000)
    status = library.sgl_compat_register_ops(message, len(message))
    return status, message.value.decode()


def state(library, name):
    return library.sgl_compat_get_op_state(name.encode())


def operands(tokens, n, k):
    a = torch.randn(tokens, k, dtype=torch.bfloat16)
    w = torch.randn(n, k, dtype=torch.bfloat16)
    return a, w, a.double() @ w.double().t()


def assert_close(output, want):
    """float32 sums round to 24 bits, bfloat16 results to 8: both relative to the result itself."""
    step = 2.0 ** -8 if output.dtype == torch.bfloat16 else 2.0 ** -22
    error = ((output.double() - want).abs() / want.abs().clamp_min(1)).max().item() if output.numel() else 0.0
    assert error <= step, f"relative error {error} over {step}"


def assert_raises(kind, part, f, *args):
    try:
        f(*args)
    except kind as e:
        assert part in str(e), f"{part!r} not in {e}"
    else:
        raise AssertionError(f"no {kind.__name__}")


def stderr_of(f, *args):
    """What C code writes to stderr meanwhile."""
    with tempfile.TemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            f(*args)
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        file.seek(0)
        return file.read().decode()


def leak_free(f, *tensors):
    """f neither keeps nor gives away a reference."""
    before = [torch.ops.consumer.use_count(t) for t in tensors]
    for _ in range(10):
        f()
    after = [torch.ops.consumer.use_count(t) for t in tensors]
    assert before == after, (before, after)


# --- the operators on CPU tensors, reference backend ------------------------------------------------------------------


def main_registers():
    assert not hasattr(torch.ops.sgl_kernel, "dsv3_router_gemm")
    assert register(compat) == (OK, "")
    assert register(compat) == (OK, "")
    assert compat.sgl_compat_register_jit_ops(None, ctypes.c_size_t(0)) == OK
    names = [compat.sgl_compat_op_name(i).decode() for i in range(len(SERVED))]
    assert names == SERVED and compat.sgl_compat_op_name(len(SERVED)) is None
    for name in names:
        assert state(compat, name) == REGISTERED
    for name, want in SCHEMAS.items():
        schema = str(getattr(torch.ops.sgl_kernel, name).default._schema)
        assert schema == f"sgl_kernel::{name}{want} -> ()", schema


def main_native():
    for name in sorted(CXX):
        for case in cases(torch, name, "cpu"):
            case.run(getattr(torch.ops.consumer, name), *case.more)
        before = cases(torch, name, "cpu")
        case = next(before)
        leak_free(lambda: getattr(torch.ops.sgl_kernel, OPERATORS.get(name, name))(*case.args, *case.more), *(a for a in case.args if torch.is_tensor(a)))
        leak_free(lambda: getattr(torch.ops.consumer, name)(*case.args, *case.more), *(a for a in case.args if torch.is_tensor(a)))


def main_warns_once():
    a, w, _ = operands(1, 256, 7168)
    text = stderr_of(lambda: [torch.ops.sgl_kernel.dsv3_router_gemm(torch.empty(1, 256), a, w) for _ in range(3)])
    assert text.count("\n") == 1 and "torch.ops.sgl_kernel.dsv3_router_gemm is deprecated" in text, text
    assert "sgl_kernel_jit.dsv3_router_gemm" in text and "called from" not in text, text
    compat.sgl_compat_set_warnings(0, None, 0)


def main_router():
    for n, k in ROUTER:
        for tokens in (1, 2, 7, 16):
            a, w, want = operands(tokens, n, k)
            for dtype in (torch.float32, torch.bfloat16):
                output = torch.full((tokens, n), float("nan"), dtype=dtype)
                assert torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w) is None
                assert_close(output, want)
                output = torch.full((tokens, n), float("nan"), dtype=dtype)
                torch.ops.consumer.router(output, a, w)
                assert_close(output, want)


def main_fused_a():
    for n, k in FUSED_A:
        for tokens in (1, 3, 16):
            a, w, want = operands(tokens, n, k)
            for op in (torch.ops.sgl_kernel.dsv3_fused_a_gemm, torch.ops.consumer.fused_a):
                output = torch.full((tokens, n), float("nan"), dtype=torch.bfloat16)
                op(output, a, w.t())
                assert_close(output, want)


def bmm_operands(a_type, b_type, batch=3, m=5, n=24, k=64):
    a = torch.randn(batch, m, k).to(a_type)
    b = torch.randn(batch, n, k).to(b_type).transpose(1, 2)
    scales = torch.tensor([0.37]), torch.tensor(0.25)
    return a, b, *scales, torch.bmm(a.double(), b.double()) * scales[0].double() * scales[1].double()


def main_bmm_fp8():
    """Through the operator and through the C++ function, whose tensors are passed by value."""
    e4m3, e5m2 = torch.float8_e4m3fn, torch.float8_e5m2
    for a_type, b_type in ((e4m3, e4m3), (e4m3, e5m2), (e5m2, e4m3)):
        a, b, a_scale, b_scale, want = bmm_operands(a_type, b_type)
        for dtype in (torch.bfloat16, torch.float16):
            for op in (torch.ops.sgl_kernel.bmm_fp8, torch.ops.consumer.bmm_fp8):
                output = torch.full(want.shape, float("nan"), dtype=dtype)
                assert op(a, b, output, a_scale, b_scale, torch.empty(4096, dtype=torch.uint8), 12345) is None
                assert ((output.double() - want).abs() <= want.abs() * 2.0**-8 + 2.0**-24).all()
    everything = (a, b, output, a_scale, b_scale, torch.empty(0, dtype=torch.uint8))
    for op in (torch.ops.sgl_kernel.bmm_fp8, torch.ops.consumer.bmm_fp8):
        leak_free(lambda: op(*everything, 0), *everything)
        wrong = (a.float(), *everything[1:])
        leak_free(lambda: assert_raises(RuntimeError, "A must be float8_e4m3fn", op, *wrong, 0), *wrong)
        spread = torch.empty(1, dtype=torch.uint8).expand(4096)
        assert_raises(RuntimeError, "workspace_buffer must be packed", op, *everything[:5], spread, 0)
    result = torch.library.opcheck(torch.ops.sgl_kernel.bmm_fp8.default, (*everything, 0), test_utils=("test_faketensor", "test_autograd_registration"))
    assert set(result.values()) == {"SUCCESS"}, result


def main_zero_tokens():
    torch.ops.sgl_kernel.dsv3_router_gemm(torch.empty(0, 256), torch.empty(0, 7168, dtype=torch.bfloat16), torch.zeros(256, 7168, dtype=torch.bfloat16))
    torch.ops.consumer.router(torch.empty(0, 256), torch.empty(0, 7168, dtype=torch.bfloat16), torch.zeros(256, 7168, dtype=torch.bfloat16))


def main_views():
    """A storage offset, and a tensor that needs grad."""
    a, w, want = operands(4, 256, 7168)
    padded = torch.cat([torch.zeros(3, 7168, dtype=torch.bfloat16), a])
    output = torch.zeros(6, 256)
    torch.ops.sgl_kernel.dsv3_router_gemm(output[2:], padded[3:], w.requires_grad_())
    assert_close(output[2:], want)
    assert not output[:2].any()


def main_errors():
    a, w, _ = operands(2, 256, 7168)
    output = torch.zeros(2, 256)
    for op in (torch.ops.sgl_kernel.dsv3_router_gemm, torch.ops.consumer.router):
        assert_raises(RuntimeError, "dsv3_router_gemm", op, output, a.float(), w)
        assert_raises(RuntimeError, "dsv3_router_gemm", op, output, a[:, :7000], w)
        assert_raises(RuntimeError, "dsv3_router_gemm", op, output[0], a, w)
        assert_raises(RuntimeError, "dsv3_router_gemm", op, output.int(), a, w)
        assert_raises(RuntimeError, "dsv3_router_gemm", op, torch.zeros(3, 256), a, w)
        assert not output.any()
    assert_raises(RuntimeError, "dsv3_fused_a_gemm", torch.ops.sgl_kernel.dsv3_fused_a_gemm, output, a, w)
    assert_raises(RuntimeError, "mat_a is not a dense tensor", torch.ops.consumer.router, output, a.to_sparse(), w)
    # In C++ it is a c10::Error.
    assert "dsv3_router_gemm" in torch.ops.consumer.router_error(output, a.float(), w)
    assert torch.ops.consumer.router_error(output, a, w) == ""
    assert "output is not a dense tensor" in torch.ops.consumer.undefined_error(a)


def main_odd_tensors():
    """Nothing is computed on a layout that the kernels do not read, and nothing is written."""
    a, w, _ = operands(2, 256, 7168)
    output = torch.zeros(2, 256)
    shifted = torch.zeros(2 * 7168 + 1, dtype=torch.bfloat16)[1:].view(2, 7168)
    odd = {
        "packed row-major": [(output, a.t().contiguous().t(), w), (output, torch.zeros(2, 14336, dtype=torch.bfloat16)[:, ::2], w),
                             (output, a[:1].expand(2, 7168), w), (torch.zeros(1, 256).expand(2, 256), a, w), (torch.zeros(2, 1).expand(2, 256), a, w)],
        "2 dimensions": [(torch.tensor(1.0), a, w), (output, torch.tensor(1.0, dtype=torch.bfloat16), w), (output, a.view(2, 1, 1, 7168), w)],
        "multiple of 16 bytes": [(output, shifted, w), (torch.zeros(513)[1:].view(2, 256), a, w)],
        "must not overlap": [(w.view(torch.float32).view(-1)[:512].view(2, 256), a, w)],
    }
    before = w.clone()
    for part, calls in odd.items():
        for call in calls:
            for op in (torch.ops.sgl_kernel.dsv3_router_gemm, torch.ops.consumer.router):
                assert_raises(RuntimeError, part, op, *call)
            assert torch.equal(w, before)
    assert not output.any()
    for op in (torch.ops.sgl_kernel.dsv3_router_gemm, torch.ops.consumer.router):
        # The dispatcher refuses these itself; as C++ arguments they arrive.
        for tensor in (output.to_sparse(), output.to_sparse_csr()):
            assert_raises(RuntimeError, "dsv3_router_gemm", op, tensor, a, w)
        needs_grad = [t.clone().requires_grad_() for t in (output, a, w)]
        op(*needs_grad)
        assert_close(needs_grad[0].detach(), a.double() @ w.double().t())
        stepped = torch.as_strided(a.clone(), (1, 7168), (2**60, 1))  # the stride of a dimension of size 1 does not count
        one = torch.zeros(1, 256)
        op(one, stepped, w)
        assert_close(one, a[:1].double() @ w.double().t())


def main_keeps_no_reference():
    a, w, _ = operands(2, 256, 7168)
    output, wrong = torch.zeros(2, 256), a.float()
    op = torch.ops.sgl_kernel.dsv3_router_gemm
    leak_free(lambda: op(output, a, w), output, a, w)
    leak_free(lambda: torch.ops.consumer.router(output, a, w), output, a, w)
    leak_free(lambda: assert_raises(RuntimeError, "", op, output, wrong, w), output, wrong, w)
    leak_free(lambda: torch.ops.consumer.router_error(output, wrong, w), output, wrong, w)
    meta = [t.to("meta") for t in (output, a, w)]
    leak_free(lambda: torch.ops.sgl_kernel_jit.dsv3_router_gemm(*meta), *meta)


def main_meta_and_fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    meta = [torch.empty(s, dtype=d, device="meta") for s, d in (((2, 256), torch.float32), ((2, 7168), torch.bfloat16), ((256, 7168), torch.bfloat16))]
    assert torch.ops.sgl_kernel_jit.dsv3_router_gemm(*meta) is None
    assert_raises(NotImplementedError, "Meta", torch.ops.sgl_kernel.dsv3_router_gemm, *meta)  # as it always was
    for registered in (False, True):
        with FakeTensorMode():
            fake = [torch.empty(2, 256), torch.empty(2, 7168, dtype=torch.bfloat16), torch.empty(256, 7168, dtype=torch.bfloat16)]
            assert torch.ops.sgl_kernel.dsv3_router_gemm(*fake) is None
        # Old code registers one itself.
        if torch.ops.sgl_kernel.dsv3_router_gemm.default.has_kernel_for_dispatch_key("CUDA") and not registered:
            torch.library.register_fake("sgl_kernel::dsv3_router_gemm")(lambda output, mat_a, mat_b: None)


def main_compiles():
    @torch.compile(fullgraph=True, backend="eager")
    def layer(a, w):
        output = torch.empty(a.shape[0], w.shape[0])
        torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w)
        return output * 2

    for tokens in (2, 5):
        a, w, want = operands(tokens, 256, 7168)
        assert_close(layer(a, w), want * 2)


def main_opcheck():
    a, w, _ = operands(2, 256, 7168)
    result = torch.library.opcheck(torch.ops.sgl_kernel.dsv3_router_gemm.default, (torch.empty(2, 256), a, w))
    assert set(result.values()) == {"SUCCESS"}, result
    a, w, _ = operands(1, 2112, 7168)
    result = torch.library.opcheck(torch.ops.sgl_kernel.dsv3_fused_a_gemm.default, (torch.empty(1, 2112, dtype=torch.bfloat16), a, w.t()))
    assert set(result.values()) == {"SUCCESS"}, result


def main_threads():
    import threading

    a, w, want = operands(2, 256, 7168)
    outputs = [torch.zeros(2, 256) for _ in range(8)]
    threads = [threading.Thread(target=torch.ops.sgl_kernel.dsv3_router_gemm, args=(o, a, w)) for o in outputs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for o in outputs:
        assert_close(o, want)


# --- the warning hook -------------------------------------------------------------------------------------------------


def hook_hears_and_raises():
    class Warning(ctypes.Structure):
        _fields_ = [("call", ctypes.c_int)] + [(name, ctypes.c_char_p) for name in ("symbol", "replacement", "caller", "text")]
        _fields_ += [("error", ctypes.c_void_p), ("error_size", ctypes.c_size_t)]

    heard = []
    answer = RAISE

    def hear(warning, user):
        heard.append((warning.contents.call, warning.contents.symbol.decode(), warning.contents.replacement.decode()))
        return answer

    hook = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Warning), ctypes.c_void_p)(hear)
    assert register(compat) == (OK, "")
    compat.sgl_compat_set_warning_hook(hook, None)
    a, w, want = operands(2, 256, 7168)
    output = torch.zeros(2, 256)
    op = torch.ops.sgl_kernel.dsv3_router_gemm
    leak_free(lambda: assert_raises(RuntimeError, "is deprecated", op, output, a, w), output, a, w)
    assert len(heard) == 10 and not output.any()
    assert_raises(RuntimeError, "is deprecated", torch.ops.consumer.router, output, a, w)
    answer = SHOWN
    assert stderr_of(lambda: [op(output, a, w) for _ in range(3)]) == ""
    assert_close(output, want)
    assert len(heard) == 12
    assert heard[0] == (2, "dsv3_router_gemm", "use sgl_kernel_jit.dsv3_router_gemm"), heard[0]
    assert heard[10][0] == 1 and "sgl_kernel_jit::dsv3_router_gemm" in heard[10][2], heard[10]
    compat.sgl_compat_set_warning_hook(None, None)


# --- an old wheel -----------------------------------------------------------------------------------------------------


def old_wheel_stays_in_charge():
    torch.ops.load_library(OLD_WHEEL)
    cached = torch.ops.sgl_kernel.dsv3_router_gemm
    assert register(compat) == (OK, "")
    assert state(compat, "dsv3_router_gemm") == ALREADY_DEFINED
    assert state(compat, "dsv3_fused_a_gemm") == REGISTERED
    a, w, _ = operands(2, 256, 7168)
    for op in (cached, torch.ops.sgl_kernel.dsv3_router_gemm, torch.ops.consumer.router):
        output = torch.zeros(2, 256)
        assert stderr_of(op, output, a, w) == ""
        assert (output == 42).all()
    a, w, want = operands(2, 2112, 7168)
    output = torch.zeros(2, 2112, dtype=torch.bfloat16)
    torch.ops.sgl_kernel.dsv3_fused_a_gemm(output, a, w.t())
    assert_close(output, want)


def old_wheel_is_the_other_side():
    """Our kernel under its supported name, compared with the old operator, which writes 42."""
    message = ctypes.create_string_buffer(1000)
    assert compat.sgl_compat_register_jit_ops(message, len(message)) == OK, message.value
    assert compat.sgl_compat_policy_set(b"shadow dsv3_router_gemm first=10", b"a test", message, len(message)) == OK, message.value
    a, w, want = operands(2, 256, 7168)
    output = torch.zeros(2, 256)
    op = torch.ops.sgl_kernel_jit.dsv3_router_gemm
    text = stderr_of(op, output, a, w)
    assert "dsv3_router_gemm: the JIT kernel's output differs from the old kernel's by" in text and text.count("\n") == 1, text
    assert_close(output, want)
    leak_free(lambda: op(output, a, w), output, a, w)
    assert compat.sgl_compat_policy_set(b"shadow dsv3_router_gemm first=100 return=other", b"a test", message, len(message)) == OK, message.value
    op(output, a, w)
    assert (output == 42).all()


# --- loaded before torch ----------------------------------------------------------------------------------------------


def before_torch_then_torch():
    global torch
    library = load()
    status, message = register(library)
    assert status == NO_TORCH and "import torch" in message, (status, message)
    import torch

    assert register(library) == (OK, "")
    a, w, want = operands(2, 256, 7168)
    output = torch.zeros(2, 256)
    torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w)
    assert_close(output, want)


# --- without the reference backend ------------------------------------------------------------------------------------


def cpu_is_an_error():
    assert register(compat) == (OK, "")
    a, w, _ = operands(2, 256, 7168)
    output = torch.zeros(2, 256)
    leak_free(lambda: assert_raises(RuntimeError, "dsv3_router_gemm", torch.ops.sgl_kernel.dsv3_router_gemm, output, a, w), output, a, w)
    assert_raises(RuntimeError, "CPU", torch.ops.consumer.router, output, a, w)
    assert not output.any()


# --- the C++ face of the JIT library ----------------------------------------------------------------------------------


def header_finds_the_stream_once():
    """A stand-in for the part of torch that is not here: looked up until it is there, then held once."""
    torch.ops.load_library(HEADER)
    if torch.version.cuda:  # it is here; without a driver it has no streams
        return torch.cuda.is_available() or assert_raises(RuntimeError, "stream", torch.ops.header.stream, 0)
    libc = ctypes.CDLL(None)
    libc.dlopen.restype = ctypes.c_void_p
    libc.dlopen.argtypes, libc.dlclose.argtypes = (ctypes.c_char_p, ctypes.c_int), (ctypes.c_void_p,)
    loaded = lambda: libc.dlopen(b"libtorch_cuda.so", os.RTLD_LAZY | os.RTLD_NOLOAD)
    for _ in range(2):
        assert_raises(RuntimeError, "libtorch_cuda", torch.ops.header.stream, 3)
    handle = libc.dlopen(CUDA.encode(), os.RTLD_NOW)
    assert handle and [torch.ops.header.stream(device) for device in range(3)] == [5, 6, 7]
    assert_raises(RuntimeError, "cuda:-1", torch.ops.header.stream, -1)
    libc.dlclose(handle)
    assert loaded() == handle and torch.ops.header.stream(0) == 5
    libc.dlclose(handle)  # what loaded() took
    libc.dlclose(handle)  # and what the header holds: nothing is left
    assert loaded() is None


def header_native():
    for name in ALL:
        for case in cases(torch, name, "cpu"):
            if name == "hadamard_transform":  # writes into a tensor that it is given
                output = torch.empty(case.args[0].shape, dtype=case.args[0].dtype)
                if case.args[0].stride(-1) == 1:
                    torch.ops.header.hadamard_transform(case.args[0], output, case.args[1])
                    case.check(output)
            else:
                case.run(getattr(torch.ops.header, name), *case.more)


def header_on_real_tensors():
    a, w, want = operands(3, 256, 7168)
    output = torch.zeros(3, 256)
    torch.ops.header.router(output, a, w)
    assert_close(output, want)
    leak_free(lambda: torch.ops.header.router(output, a, w), output, a, w)
    assert_raises(RuntimeError, "dsv3_router_gemm", torch.ops.header.router, output, a.float(), w)
    a, w, want = operands(3, 2112, 7168)
    output = torch.zeros(3, 2112, dtype=torch.bfloat16)
    torch.ops.header.fused_a(output, a, w.t())
    assert_close(output, want)


def header_bmm_fp8():
    """The reference against torch's own conversions, which are exact: every dtype, and the scales' two forms."""
    bits = torch.arange(2 * 5 * 96) * 37 % 120  # finite in both formats
    weight = (torch.arange(2 * 24 * 96) * 53 % 120 + torch.arange(2 * 24 * 96) % 2 * 128).to(torch.uint8).view(torch.float8_e4m3fn).view(2, 24, 96)
    a_scale, b_scale, none = torch.tensor([0.013]), torch.tensor(0.37), torch.empty(0, dtype=torch.uint8)
    for a_type in (torch.float8_e4m3fn, torch.float8_e5m2):
        a = (bits % (120 if a_type == torch.float8_e4m3fn else 70)).to(torch.uint8).view(a_type).view(2, 5, 96)
        want = torch.bmm(a.double(), weight.transpose(1, 2).double()) * (a_scale.double() * b_scale.double())
        for d_type in (torch.bfloat16, torch.float16):
            d = torch.zeros(2, 5, 24, dtype=d_type)
            torch.ops.header.bmm_fp8(a, weight.transpose(1, 2), d, a_scale, b_scale, none)
            place = 2**-8 if d_type == torch.bfloat16 else 2**-11
            assert ((d.double() - want).abs() <= want.abs() * place + 2**-25).all(), (a_type, d_type)
    assert_raises(RuntimeError, "column-major", torch.ops.header.bmm_fp8, a, weight.transpose(1, 2).contiguous(), d, a_scale, b_scale, none)
    assert_raises(RuntimeError, "B_scale must be float32", torch.ops.header.bmm_fp8, a, weight.transpose(1, 2), d, a_scale, b_scale.half(), none)


if SCENARIO != "before":
    import torch

    torch.manual_seed(7)
    compat = load()
    torch.ops.load_library(CONSUMER)

passed = failed = 0
for name, check in list(globals().items()):
    if name.startswith(SCENARIO + "_") and callable(check):
        try:
            check()
            passed += 1
        except Exception:
            failed += 1
            print(f"FAIL real_torch.{name}\n{traceback.format_exc()}", flush=True)
print(f"{SCENARIO}: {passed} passed, {failed} failed", flush=True)
