if not _is_hip:
    from sgl_kernel import dsv3_router_gemm
else:
    from sgl_kernel import dsv3_router_gemm
if is_cuda() or is_musa():
    from sgl_kernel import dsv3_router_gemm
if is_cuda() and not is_hip():
    from sgl_kernel import dsv3_router_gemm
if torch.version.hip is None:
    from sgl_kernel import dsv3_router_gemm
if torch.version.hip is not None:
    from sgl_kernel import dsv3_router_gemm
if device != "xpu":
    from sgl_kernel import dsv3_router_gemm
if device == "npu":
    from sgl_kernel import dsv3_router_gemm
if platform.isRocm():
    def f():
        from sgl_kernel import dsv3_router_gemm
if is_musa:
    pass
else:
    from sgl_kernel import dsv3_router_gemm
other = torch.version.hip
if other:
    from sgl_kernel import dsv3_router_gemm
if is_cuda:
    pass
elif shipping or chip:
    from sgl_kernel import dsv3_router_gemm
match plat:
    case "musa":
        from sgl_kernel import dsv3_router_gemm
    case "cuda":
        from sgl_kernel import dsv3_router_gemm
def g():
    if is_hip():
        return 1
    from sgl_kernel import dsv3_router_gemm
def h():
    if not is_hip():
        return 1
    from sgl_kernel import dsv3_router_gemm
if platform.machine() == "amd64":
    from sgl_kernel import dsv3_router_gemm
