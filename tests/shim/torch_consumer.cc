// Somebody's C++ extension that calls the deleted functions, compiled with torch's own headers.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

void dsv3_router_gemm(at::Tensor &output, const at::Tensor &mat_a, const at::Tensor &mat_b);
void dsv3_fused_a_gemm(at::Tensor &output, at::Tensor const &mat_a, at::Tensor const &mat_b);
void bmm_fp8(at::Tensor A, at::Tensor B, at::Tensor D, at::Tensor A_scale, at::Tensor B_scale, at::Tensor workspace_buffer,
             int64_t cublas_handle);
void downcast_fp8(at::Tensor &k, at::Tensor &v, at::Tensor &k_out, at::Tensor &v_out, at::Tensor &k_scale, at::Tensor &v_scale, at::Tensor &loc,
                  int64_t mult, int64_t offset);
void merge_state(at::Tensor v_a, at::Tensor s_a, at::Tensor v_b, at::Tensor s_b, at::Tensor v_merged, at::Tensor s_merged);
void segment_packbits(at::Tensor x, at::Tensor input_indptr, at::Tensor output_indptr, at::Tensor y, int64_t batch_size, int64_t cuda_stream);
void store_kv_cache(at::Tensor k_cache, at::Tensor v_cache, at::Tensor out_loc, at::Tensor k, at::Tensor v);
void sgl_per_tensor_quant_fp8(at::Tensor input, at::Tensor output_q, at::Tensor output_s, bool is_static);

static void router(at::Tensor output, const at::Tensor &mat_a, const at::Tensor &mat_b) {
  dsv3_router_gemm(output, mat_a, mat_b);
}

static void fused_a(at::Tensor output, const at::Tensor &mat_a, const at::Tensor &mat_b) {
  dsv3_fused_a_gemm(output, mat_a, mat_b);
}

static void bmm(const at::Tensor &a, const at::Tensor &b, at::Tensor d, const at::Tensor &a_scale, const at::Tensor &b_scale,
                const at::Tensor &workspace_buffer, int64_t cublas_handle) {
  bmm_fp8(a, b, d, a_scale, b_scale, workspace_buffer, cublas_handle);
}

static void downcast(at::Tensor k, at::Tensor v, at::Tensor k_out, at::Tensor v_out, at::Tensor k_scale, at::Tensor v_scale, at::Tensor loc,
                     int64_t mult, int64_t offset) {
  downcast_fp8(k, v, k_out, v_out, k_scale, v_scale, loc, mult, offset);
}

// The text of the c10::Error that the call throws; "" when it throws none.
static std::string router_error(at::Tensor output, const at::Tensor &mat_a, const at::Tensor &mat_b) {
  try {
    dsv3_router_gemm(output, mat_a, mat_b);
  } catch (const c10::Error &e) {
    return e.what_without_backtrace();
  }
  return "";
}

static std::string undefined_error(const at::Tensor &mat_a) {
  at::Tensor undefined;
  return router_error(undefined, mat_a, mat_a);
}

// How many references to the tensor's TensorImpl there are, without the argument's own.
static int64_t use_count(const at::Tensor &tensor) { return static_cast<int64_t>(tensor.use_count()); }

TORCH_LIBRARY(consumer, m) {
  m.def("router(Tensor(a!) output, Tensor mat_a, Tensor mat_b) -> ()", router);
  m.def("fused_a(Tensor(a!) output, Tensor mat_a, Tensor mat_b) -> ()", fused_a);
  m.def("bmm_fp8(Tensor a, Tensor b, Tensor(a!) d, Tensor a_scale, Tensor b_scale, Tensor workspace_buffer, int cublas_handle) -> ()", bmm);
  m.def("downcast_fp8(Tensor k, Tensor v, Tensor(a!) k_out, Tensor(b!) v_out, Tensor k_scale, Tensor v_scale, Tensor loc, int mult, "
        "int offset) -> ()", downcast);
  m.def("merge_state(Tensor v_a, Tensor s_a, Tensor v_b, Tensor s_b, Tensor v_merged, Tensor s_merged) -> ()", merge_state);
  m.def("segment_packbits(Tensor x, Tensor input_indptr, Tensor output_indptr, Tensor(a!) y, int batch_size, int cuda_stream) -> ()", segment_packbits);
  m.def("set_kv_buffer_kernel(Tensor k_cache, Tensor v_cache, Tensor out_loc, Tensor k, Tensor v) -> ()", store_kv_cache);
  m.def("sgl_per_tensor_quant_fp8(Tensor input, Tensor(a!) output_q, Tensor(b!) output_s, bool is_static) -> ()", sgl_per_tensor_quant_fp8);
  m.def("router_error(Tensor(a!) output, Tensor mat_a, Tensor mat_b) -> str", router_error);
  m.def("undefined_error(Tensor mat_a) -> str", undefined_error);
  m.def("use_count(Tensor tensor) -> int", use_count);
}
