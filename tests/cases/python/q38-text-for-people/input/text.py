log.info("calling dsv3_router_gemm")
log.info("dsv3_router_gemm")
print("dsv3_router_gemm", x)
raise Foo("sgl_kernel.dsv3_router_gemm is gone")
assert x, "needs dsv3_router_gemm"
warnings.warn(f"{x} dsv3_router_gemm")
parser.add_argument("--x", help="uses dsv3_router_gemm")
MSG = "the kernel dsv3_router_gemm takes 16 rows"
LABEL = "dsv3_router_gemm bf16"
k = {"dsv3_router_gemm is a key here": 1}
logger.info("from sgl_kernel import dsv3_router_gemm failed")
sys.stderr.write("dsv3_router_gemm missing\n")
raise RuntimeError("flashinfer.bmm_fp8 is missing")
print("use %s or sgl_kernel.dsv3_router_gemm" % x)
print("use {} or sgl_kernel.dsv3_router_gemm".format(x))
x = f"dsv3_router_gemm-{n}"
y = f"{pkg}.dsv3_router_gemm"
z = "sgl_kernel.merge_state_v2 and other.dsv3_router_gemm here"
