from sgl_kernel import gelu_and_mul
from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm

type Weights[T] = dict[str, T]


class Table[T: (int, float)]:
    def get[U](self, key: U, *rest: *tuple[T, ...]) -> T: ...


def run(x, w, names):
    try:
        x = dsv3_router_gemm(x, w)
    except* ValueError as group:
        print(f"{names["first"]!r:>{len("width")}}", t"{group}")
    match x:
        case {"kind": "gate", **rest} if (n := len(rest)) > 2:
            return n
        case [first, *_] | (first, _):
            return first
