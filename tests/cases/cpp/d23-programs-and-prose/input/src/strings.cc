void strings() {
  run("import sgl_kernel as sk\nsk.dsv3_router_gemm(a, b)\n");
  run("import sgl_kernel; sgl_kernel.dsv3_router_gemm(a, b)");
  eval("sgl_kernel.dsv3_router_gemm(a, b)");
  eval("torch.ops.sgl_kernel.dsv3_router_gemm.default");
  eval("acme.dsv3_router_gemm(a, b)");
  throw std::runtime_error("from sgl_kernel import dsv3_router_gemm failed");
  log("import of sgl_kernel.dsv3_router_gemm failed");
  log("import sgl_kernel first, then call dsv3_router_gemm");
}
