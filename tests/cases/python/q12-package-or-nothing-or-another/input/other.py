if cuda():
    import sgl_kernel as ops
else:
    import other as ops
def f(x): return ops.dsv3_router_gemm(x)
