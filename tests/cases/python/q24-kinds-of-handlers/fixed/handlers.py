try:
    from sgl_kernel import dsv3_router_gemm
except (ImportError, OSError) as e: x = 1
try:
    from sgl_kernel import dsv3_router_gemm
except: x = 1
try:
    from sgl_kernel import dsv3_router_gemm
except builtins.ImportError: x = 1
ERR = (ImportError, ValueError)
try:
    from sgl_kernel import dsv3_router_gemm
except ERR: x = 1
try: pass
except KeyError:
    from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
try: pass
except ImportError:
    from sgl_kernel import dsv3_router_gemm
try: import a
except ImportError: pass
else:
    from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
finally:
    from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
try:
    def f():
        from sglang.kernels.ops.gemm.dsv3_router_gemm import dsv3_router_gemm
    class A:
        from sgl_kernel import dsv3_router_gemm
except ImportError: pass
try:
    if x:
        with y:
            from sgl_kernel import dsv3_router_gemm
except* ImportError: pass
