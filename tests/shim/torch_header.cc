// The C++ face of the JIT library, sgl_kernel_jit/torch.h, compiled with torch's own headers: what a rewritten caller
// includes instead of the deleted declarations.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <sgl_kernel_jit/torch.h>

static void router(at::Tensor output, const at::Tensor &mat_a, const at::Tensor &mat_b) {
  sgl_kernel_jit::dsv3_router_gemm(output, mat_a, mat_b);
}

static void fused_a(at::Tensor output, const at::Tensor &mat_a, const at::Tensor &mat_b) {
  sgl_kernel_jit::dsv3_fused_a_gemm(output, mat_a, mat_b);
}

static void bmm_fp8(at::Tensor a, at::Tensor b, at::Tensor d, at::Tensor a_scale, at::Tensor b_scale, at::Tensor workspace) {
  sgl_kernel_jit::bmm_fp8(a, b, d, a_scale, b_scale, workspace, 0);
}

static void downcast(at::Tensor k, at::Tensor v, at::Tensor k_out, at::Tensor v_out, at::Tensor k_scale, at::Tensor v_scale, at::Tensor loc,
                     int64_t mult, int64_t offset) {
  sgl_kernel_jit::downcast_fp8(k, v, k_out, v_out, k_scale, v_scale, loc, mult, offset);
}

static void hadamard_transform(const at::Tensor &x, at::Tensor output, double scale) { sgl_kernel_jit::hadamard_transform(x, output, scale); }

static int64_t stream(int64_t device) {
  return reinterpret_cast<int64_t>(sgl_kernel_jit::detail::current_cuda_stream(static_cast<int32_t>(device)));
}

TORCH_LIBRARY(header, m) {
  m.def("stream(int device) -> int", stream);
  m.def("router(Tensor(a!) output, Tensor mat_a, Tensor mat_b) -> ()", router);
  m.def("bmm_fp8(Tensor a, Tensor b, Tensor(a!) d, Tensor a_scale, Tensor b_scale, Tensor workspace) -> ()", bmm_fp8);
  m.def("downcast_fp8(Tensor k, Tensor v, Tensor(a!) k_out, Tensor(b!) v_out, Tensor k_scale, Tensor v_scale, Tensor loc, int mult, "
        "int offset) -> ()", downcast);
  m.def("hadamard_transform(Tensor x, Tensor(a!) output, float scale) -> ()", hadamard_transform);
  m.def("merge_state(Tensor v_a, Tensor s_a, Tensor v_b, Tensor s_b, Tensor v_merged, Tensor s_merged) -> ()", sgl_kernel_jit::merge_state);
  m.def("segment_packbits(Tensor x, Tensor input_indptr, Tensor output_indptr, Tensor(a!) y, int batch_size, int cuda_stream) -> ()",
        sgl_kernel_jit::segment_packbits);
  m.def("set_kv_buffer_kernel(Tensor k_cache, Tensor v_cache, Tensor out_loc, Tensor k, Tensor v) -> ()", sgl_kernel_jit::set_kv_buffer_kernel);
  m.def("sgl_per_tensor_quant_fp8(Tensor input, Tensor(a!) output_q, Tensor(b!) output_s, bool is_static) -> ()",
        sgl_kernel_jit::sgl_per_tensor_quant_fp8);
  m.def("fused_a(Tensor(a!) output, Tensor mat_a, Tensor mat_b) -> ()", fused_a);
}
