"""SGL_KERNEL_COMPAT_LOG=calls: a line for each call, also of what an old wheel has itself, and of what other libraries serve."""
import glob, json, os, pathlib, pickle, warnings

import torch
import sgl_kernel
from sglang.kernels.ops.quantization import hadamard
from checks import operands, raises

from sgl_kernel_compat import _log

warnings.simplefilter("ignore")
REAL = vars(sgl_kernel.gemm)["dsv3_router_gemm"]
A, W, _ = operands(torch, 2, 256)


def transform(x, scale=1.0):
    if scale < 0:
        raise ValueError("a negative scale")
    return x * scale


hadamard.hadamard_transform_12n = transform


def logged(f, *args):
    """The lines of a call, without time and thread."""
    def lines():
        files = glob.glob(os.environ["SGL_KERNEL_COMPAT_LOG_DIR"] + "/*.calls")
        return pathlib.Path(files[0]).read_text().splitlines() if files else []

    before = len(lines())
    f(*args)
    new = [json.loads(line) for line in lines()[before:]]
    for line in new:
        assert line.pop("time") > 0 and line.pop("thread") == os.getpid(), line
    return new


def tensor(name, shape, strides, dtype="float32"):
    return {"name": name, "dtype": dtype, "device": "cpu", "shape": shape, "strides": strides}


def test_what_an_old_wheel_has():
    (line,) = logged(lambda: sgl_kernel.dsv3_router_gemm(A, router_weights=W))
    assert line == {"symbol": "dsv3_router_gemm", "face": "python", "outcome": "ok", "device": "cpu",
                    "tensors": [tensor("hidden_states", [2, 7168], [7168, 1], "bfloat16"), tensor("router_weights", [256, 7168], [7168, 1], "bfloat16")]}, line
    from sgl_kernel.gemm import dsv3_router_gemm as taken

    assert taken is sgl_kernel.dsv3_router_gemm is sgl_kernel.gemm.dsv3_router_gemm and taken.__wrapped__ is REAL
    assert pickle.loads(pickle.dumps(taken)) is taken and sgl_kernel.gemm.uses_it() is REAL
    compiled = torch.compile(lambda a, w: taken(a, w) + 1, fullgraph=True, backend="eager")
    assert (compiled(A, W) == 43).all() and logged(compiled, A, W) == []


def test_routes():
    x = torch.ones(4, 2).t()
    (line,) = logged(lambda: sgl_kernel.hadamard_transform_12n(x, scale=2.0))
    assert line == {"symbol": "hadamard_transform_12n", "face": "python", "outcome": "ok", "device": "cpu", "tensors": [tensor("x", [2, 4], [1, 2])]}, line
    (line,) = logged(lambda: raises(ValueError, "negative", sgl_kernel.hadamard_transform_12n, x, -1.0))
    assert (line["outcome"], line["message"]) == ("error", "ValueError: a negative scale") and line["tensors"] == [tensor("x", [2, 4], [1, 2])], line
    (line,) = logged(lambda: torch.ops.sgl_kernel.fast_hadamard_transform_12N(x, 2.0))
    assert (line["symbol"], line["face"], line["outcome"]) == ("hadamard_transform_12n", "operator", "ok") and line["tensors"] == [tensor("x", [2, 4], [1, 2])], line
    compiled = torch.compile(lambda x: sgl_kernel.hadamard_transform_12n(x, 2.0), fullgraph=True, backend="eager")
    assert torch.equal(compiled(x), x * 2)


def test_what_is_gone():
    (line,) = logged(lambda: raises(RuntimeError, "is gone", lambda: torch.ops.sgl_kernel.awq_dequantize(torch.ones(1), torch.ones(1), torch.ones(1))))
    assert (line["symbol"], line["face"], line["outcome"], len(line["tensors"])) == ("awq_dequantize", "operator", "error", 3), line
    assert "torch.ops.sgl_kernel.awq_dequantize is gone" in line["message"], line


def test_kernels_have_one_line():
    a, w, _ = operands(torch, 2, 2112)
    (line,) = logged(lambda: sgl_kernel.dsv3_fused_a_gemm(a, w.t()))
    assert (line["symbol"], line["face"], line["outcome"]) == ("dsv3_fused_a_gemm", "jit", "ok"), line


def test_odd_arguments():
    """Tensors in lists, tensors without strides, and what is no tensor."""
    x = torch.ones(2)
    (line,) = logged(_log.run, "cublas_grouped_gemm", "python", lambda *args, **kw: None, ["inputs", "sparse"], ([x, x], torch.eye(2).to_sparse(), 3, None), {"text": "x"})
    assert line["tensors"] == [tensor("inputs[0]", [2], [1]), tensor("inputs[1]", [2], [1]),
                               {"name": "sparse", "dtype": "float32", "device": "cpu", "shape": [2, 2]}], line
