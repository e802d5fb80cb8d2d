import sgl_kernel
a = "dsv3_router_gemm" in dir(sgl_kernel)
b = vars(sgl_kernel)["dsv3_router_gemm"]
c = sgl_kernel.__dict__["dsv3_router_gemm"]
d = sgl_kernel.__dict__.get("dsv3_router_gemm")
e = "dsv3_router_gemm" in sgl_kernel.__all__
f = other["dsv3_router_gemm"]
g = "dsv3_router_gemm" in names
h = getattr(other, "dsv3_router_gemm")
i = hasattr(obj, "dsv3_router_gemm")
j = foo(sgl_kernel, label="bmm_fp8")
