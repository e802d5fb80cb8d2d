"""sgl_kernel is imported first: it imports torch, whose entry point comes in the middle of it."""
import os, signal, threading, time

import sgl_kernel
import torch
from checks import assert_close, operands, raises


def test_served_all_the_same():
    from sgl_kernel.gemm import dsv3_router_gemm

    assert dsv3_router_gemm is sgl_kernel.dsv3_router_gemm
    a, w, want = operands(torch, 2, 256)
    output = torch.zeros(2, 256)
    torch.ops.sgl_kernel.dsv3_router_gemm(output, a, w)
    assert_close(torch, output, want)


def test_who_finds_no_operator_may_define_it():
    """As guards do before they load a library of their own. torch asks for it too, before a definition in Python."""
    exists = lambda name: torch._C._dispatch_has_kernel(f"sgl_kernel::{name}")
    assert exists("gptq_shuffle") and exists("gptq_gemm") and exists("qserve_w4a8_per_chn_gemm")
    raises(AttributeError, "gptq_shuffle is gone", getattr, torch.ops.sgl_kernel, "gptq_shuffle")
    assert not exists("gptq_shuffle") and not hasattr(torch.ops.sgl_kernel, "gptq_shuffle")
    mine = torch.library.Library("sgl_kernel", "FRAGMENT")
    for name in ("gptq_shuffle", "gptq_gemm"):
        mine.define(f"{name}(Tensor a) -> Tensor")
        mine.impl(name, lambda a: a + 1, "CPU")
        assert eval(f"torch.ops.sgl_kernel.{name}")(torch.ones(1)) == 2 and hasattr(torch.ops.sgl_kernel, name)

    @torch.library.custom_op("sgl_kernel::qserve_w4a8_per_chn_gemm", mutates_args=())
    def qserve_w4a8_per_chn_gemm(a: torch.Tensor) -> torch.Tensor:
        return a + 2

    assert torch.ops.sgl_kernel.qserve_w4a8_per_chn_gemm(torch.ones(1)) == 3
    # Who does not, and calls it after all.
    assert getattr(torch.ops.sgl_kernel, "qserve_w4a8_per_group_gemm", None) is None
    a = [torch.ones(1)] * 7
    raises(RuntimeError, "torch.ops.sgl_kernel.qserve_w4a8_per_group_gemm is gone", lambda: torch.ops.sgl_kernel.qserve_w4a8_per_group_gemm(*a))
    assert getattr(torch.ops.sgl_kernel, "qserve_w4a8_per_group_gemm", None) is None
    raises(RuntimeError, "torch.ops.sgl_kernel.qserve_w4a8_per_group_gemm is gone", lambda: torch.ops.sgl_kernel.qserve_w4a8_per_group_gemm(*a))
    # One that has been handed out stays, as those do that are served, and torch tells what to do.
    for name, place in (("qserve_w4a8_per_group_gemm", "<sgl-kernel-compat, which leaves an operator to others where"), ("bmm_fp8", "libsgl_kernel_compat.so, which finds")):
        e = raises(RuntimeError, f"sgl_kernel::{name}", mine.define, f"{name}(Tensor a) -> Tensor")
        assert f"Original registration: registered at {place}" in str(e) or "registered at /dev/null" in str(e), e  # torch 2.8 knows no place in Python
    errors = []

    def both():
        try:
            hasattr(torch.ops.sgl_kernel, "timestep_embedding")
            torch.ops.sgl_kernel.timestep_embedding
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=both) for _ in range(16)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert errors == []


def test_fork_while_a_thread_asks():
    from sgl_kernel_compat import _operators

    asks = threading.Event()

    def ask():
        with _operators._lock:
            asks.set()
            time.sleep(0.2)

    thread = threading.Thread(target=ask)
    thread.start()
    asks.wait()
    child = os.fork()
    if child == 0:
        os._exit(hasattr(torch.ops.sgl_kernel, "moe_fused_gate"))
    thread.join()
    deadline = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if ended == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended == (child, 0), ended
