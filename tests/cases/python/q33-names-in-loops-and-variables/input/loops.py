import sgl_kernel, torch
from torch.library import register_fake
for n in ("merge_state_v2",
          "dsv3_router_gemm",
          "other"):
    getattr(sgl_kernel, n)
for op in ["dsv3_fused_a_gemm",
           "merge_state_v2"]:
    register_fake(f"sgl_kernel::{op}")(f)
NAMES = ["bmm_fp8"]
ok = all(hasattr(sgl_kernel, n) for n in NAMES)
for n in ("dsv3_router_gemm",): register(op=n, target=f"sgl_kernel:{n}")
for i, (n, k) in enumerate([("dsv3_router_gemm", 1)]): setattr(sgl_kernel, n, k)
x = "dsv3_router_gemm"
getattr(sgl_kernel, x)
y = [getattr(torch.ops.sgl_kernel, k) for k in {"dsv3_router_gemm": 1}]
for n in ("dsv3_router_gemm",): patch("sgl_kernel." + n)
for n in ("dsv3_router_gemm",): patch("sgl_kernel.%s" % n)
for n in ("dsv3_router_gemm",): patch("sgl_kernel.{}".format(n))
for n in ("dsv3_router_gemm",): print(n)
list(map(lambda n: getattr(sgl_kernel, n), ["dsv3_router_gemm"]))
