/* C++ face of libsgl_kernel_jit for PyTorch: the operators on at::Tensor, in the argument order of the old
 * sgl_kernel functions. Header-only; works with a CPU-only PyTorch as well, and needs no CUDA header. Link
 * libsgl_kernel_jit.
 *
 * Shapes, dtypes, strides and alignment: sgl_kernel_jit.h. Runs on PyTorch's current stream of the tensors' device. The
 * result is written into `output`; nothing is allocated, and autograd is not recorded. Errors throw c10::Error, with
 * the library's message. Any thread. */
#ifndef SGL_KERNEL_JIT_TORCH_H
#define SGL_KERNEL_JIT_TORCH_H

#include "sgl_kernel_jit/sgl_kernel_jit.h"
#include <ATen/core/Tensor.h>
#include <atomic>
#include <c10/util/Exception.h>
#include <cstdint>
#include <dlfcn.h>

namespace sgl_kernel_jit {
namespace detail {

/* PyTorch's C function for the current stream lives in libtorch_cuda, which a CPU-only build does not have and to which
 * a header cannot link. It is found by name: in what the caller is linked to, else in the loaded libtorch_cuda, which
 * then stays loaded. Found once, and looked up again only while PyTorch's CUDA part is not there. */
inline void *current_cuda_stream(int32_t device_index) {
  using get_stream = int32_t(int32_t, void **);
  static std::atomic<get_stream *> found{nullptr};
  get_stream *get = found.load(std::memory_order_acquire);
  if (!get) {
    static const char name[] = "aoti_torch_get_current_cuda_stream";
    void *function = dlsym(RTLD_DEFAULT, name);
    if (!function) {
      if (void *library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD)) {
        function = dlsym(library, name);
        if (!function)
          dlclose(library);
      }
    }
    TORCH_CHECK(function, "sgl_kernel_jit: the tensors are on a CUDA device, but libtorch_cuda with ", name,
                " is not loaded");
    get = reinterpret_cast<get_stream *>(function);
    found.store(get, std::memory_order_release);
  }
  void *stream = nullptr;
  TORCH_CHECK(get(device_index, &stream) == 0, "sgl_kernel_jit: PyTorch has no current stream for cuda:", device_index);
  return stream;
}

inline sgl_jit_tensor view(const at::Tensor &t, void *data) {
  sgl_jit_tensor v;
  v.data = data;
  v.dtype = t.scalar_type() == at::kBFloat16        ? SGL_JIT_DTYPE_BFLOAT16
            : t.scalar_type() == at::kFloat         ? SGL_JIT_DTYPE_FLOAT32
            : t.scalar_type() == at::kHalf          ? SGL_JIT_DTYPE_FLOAT16
            : t.scalar_type() == at::kFloat8_e4m3fn ? SGL_JIT_DTYPE_FLOAT8_E4M3FN
            : t.scalar_type() == at::kFloat8_e5m2   ? SGL_JIT_DTYPE_FLOAT8_E5M2
            : t.scalar_type() == at::kInt           ? SGL_JIT_DTYPE_INT32
            : t.scalar_type() == at::kLong          ? SGL_JIT_DTYPE_INT64
            : t.scalar_type() == at::kByte          ? SGL_JIT_DTYPE_UINT8
            : t.scalar_type() == at::kBool          ? SGL_JIT_DTYPE_BOOL
                                                    : SGL_JIT_DTYPE_OTHER;
  v.device_type = t.is_cuda() ? SGL_JIT_DEVICE_CUDA : t.is_cpu() ? SGL_JIT_DEVICE_CPU : SGL_JIT_DEVICE_OTHER;
  v.device_index = static_cast<int32_t>(t.get_device());
  v.ndim = static_cast<int32_t>(t.dim());
  v.sizes = t.sizes().data();
  v.strides = t.strides().data();
  return v;
}

using operator_t = sgl_jit_status (*)(const sgl_jit_tensor *, const sgl_jit_tensor *, const sgl_jit_tensor *, void *,
                                      char *, size_t);

inline void call(operator_t op, const char *name, at::Tensor &output, const at::Tensor &a, const at::Tensor &b) {
  TORCH_CHECK(output.defined() && a.defined() && b.defined(), name, ": a tensor is undefined");
  const sgl_jit_tensor o = view(output, output.mutable_data_ptr());
  const sgl_jit_tensor x = view(a, const_cast<void *>(a.const_data_ptr()));
  const sgl_jit_tensor w = view(b, const_cast<void *>(b.const_data_ptr()));
  void *stream = a.is_cuda() ? current_cuda_stream(x.device_index) : nullptr;
  char message[512];
  const sgl_jit_status status = op(&o, &x, &w, stream, message, sizeof message);
  TORCH_CHECK(status == SGL_JIT_OK, message);
}

/* A tensor that is read, and one that is written. */
inline sgl_jit_tensor read_view(const at::Tensor &t, const char *name) {
  TORCH_CHECK(t.defined(), name, ": a tensor is undefined");
  return view(t, const_cast<void *>(t.const_data_ptr()));
}
inline sgl_jit_tensor written_view(const at::Tensor &t, const char *name) {
  TORCH_CHECK(t.defined(), name, ": a tensor is undefined");
  return view(t, t.mutable_data_ptr());
}

inline void *stream_of(const sgl_jit_tensor &t) {
  return t.device_type == SGL_JIT_DEVICE_CUDA ? current_cuda_stream(t.device_index) : nullptr;
}

} // namespace detail

/* output[m, n] = sum over k of hidden_states[m, k] * router_weights[n, k]. */
inline void dsv3_router_gemm(at::Tensor &output, const at::Tensor &hidden_states, const at::Tensor &router_weights) {
  detail::call(sgl_jit_dsv3_router_gemm, "dsv3_router_gemm", output, hidden_states, router_weights);
}

/* output[m, n] = sum over k of mat_a[m, k] * mat_b[k, n]; mat_b is the transposed view of a row-major weight. */
inline void dsv3_fused_a_gemm(at::Tensor &output, const at::Tensor &mat_a, const at::Tensor &mat_b) {
  detail::call(sgl_jit_dsv3_fused_a_gemm, "dsv3_fused_a_gemm", output, mat_a, mat_b);
}

/* D[b, m, n] = A_scale * B_scale * sum over k of A[b, m, k] * B[b, k, n]; each matrix of B is the transposed view of a
 * row-major weight. workspace_buffer: memory for cuBLASLt on A's device, contiguous, as many bytes as it has elements
 * (the deleted function's count, whatever the dtype), in use until the work is done; it may be empty, and the deleted
 * operator had 32 MiB. cublas_handle is not used: the library has handles of its own. */
inline void bmm_fp8(at::Tensor A, at::Tensor B, at::Tensor D, at::Tensor A_scale, at::Tensor B_scale,
                    at::Tensor workspace_buffer, int64_t cublas_handle) {
  static_cast<void>(cublas_handle);
  TORCH_CHECK(A.defined() && B.defined() && D.defined() && A_scale.defined() && B_scale.defined() &&
                  workspace_buffer.defined(),
              "bmm_fp8: a tensor is undefined");
  TORCH_CHECK(!A.is_cuda() || (workspace_buffer.is_cuda() && workspace_buffer.get_device() == A.get_device()),
              "bmm_fp8: workspace_buffer must be on the device of A");
  TORCH_CHECK(workspace_buffer.is_contiguous(), "bmm_fp8: workspace_buffer must be contiguous");
  const sgl_jit_tensor output = detail::view(D, D.mutable_data_ptr());
  const sgl_jit_tensor a = detail::view(A, const_cast<void *>(A.const_data_ptr()));
  const sgl_jit_tensor b = detail::view(B, const_cast<void *>(B.const_data_ptr()));
  const sgl_jit_tensor a_scale = detail::view(A_scale, const_cast<void *>(A_scale.const_data_ptr()));
  const sgl_jit_tensor b_scale = detail::view(B_scale, const_cast<void *>(B_scale.const_data_ptr()));
  void *stream = A.is_cuda() ? detail::current_cuda_stream(a.device_index) : nullptr;
  char message[512];
  const sgl_jit_status status =
      sgl_jit_bmm_fp8(&output, &a, &b, &a_scale, &b_scale, workspace_buffer.mutable_data_ptr(),
                      static_cast<size_t>(workspace_buffer.numel()), stream, message, sizeof message);
  TORCH_CHECK(status == SGL_JIT_OK, message);
}

/* k_out[loc[t] * mult + offset] = float8_e4m3fn(k[t] / k_scale), and the same of v. */
inline void downcast_fp8(at::Tensor &k, at::Tensor &v, at::Tensor &k_out, at::Tensor &v_out, at::Tensor &k_scale,
                         at::Tensor &v_scale, at::Tensor &loc, int64_t mult, int64_t offset) {
  static const char name[] = "downcast_fp8";
  const sgl_jit_tensor keys = detail::read_view(k, name), values = detail::read_view(v, name);
  const sgl_jit_tensor keys_out = detail::written_view(k_out, name), values_out = detail::written_view(v_out, name);
  const sgl_jit_tensor k_factor = detail::read_view(k_scale, name), v_factor = detail::read_view(v_scale, name);
  const sgl_jit_tensor slots = detail::read_view(loc, name);
  char message[512];
  const sgl_jit_status status =
      sgl_jit_downcast_fp8(&keys, &values, &keys_out, &values_out, &k_factor, &v_factor, &slots, mult, offset,
                           detail::stream_of(keys), message, sizeof message);
  TORCH_CHECK(status == SGL_JIT_OK, message);
}

/* output_q = float8_e4m3fn(input / output_s); is_static: output_s is given, else it is made, and has to be 0 before. */
inline void sgl_per_tensor_quant_fp8(at::Tensor input, at::Tensor output_q, at::Tensor output_s, bool is_static) {
  static const char name[] = "sgl_per_tensor_quant_fp8";
  const sgl_jit_tensor from = detail::read_view(input, name);
  const sgl_jit_tensor to = detail::written_view(output_q, name), scale = detail::written_view(output_s, name);
  char message[512];
  const sgl_jit_status status =
      sgl_jit_sgl_per_tensor_quant_fp8(&from, &to, &scale, is_static, detail::stream_of(from), message, sizeof message);
  TORCH_CHECK(status == SGL_JIT_OK, message);
}

/* v_merged = v_a * 2^(s_a - s) + v_b * 2^(s_b - s) with s = log2(2^s_a + 2^s_b), which s_merged gets. */
inline void merge_state(at::Tensor v_a, at::Tensor s_a, at::Tensor v_b, at::Tensor s_b, at::Tensor v_merged,
                        at::Tensor s_merged) {
  static const char name[] = "merge_state";
  const sgl_jit_tensor va = detail::read_view(v_a, name), sa = detail::read_view(s_a, name);
  const sgl_jit_tensor vb = detail::read_view(v_b, name), sb = detail::read_view(s_b, name);
  const sgl_jit_tensor v = detail::written_view(v_merged, name), s = detail::written_view(s_merged, name);
  char message[512];
  const sgl_jit_status status =
      sgl_jit_merge_state(&va, &sa, &vb, &sb, &v, &s, detail::stream_of(va), message, sizeof message);
  TORCH_CHECK(status == SGL_JIT_OK, message);
}

/* output = scale * H x for each row of x, H the Hadamard matrix; output is a contiguous tensor of the same sizes. (The
 * deleted function made it; nothing here allocates.) */
inline void hadamard_transform(const at::Tensor &x, at::Tensor &output, double scale) {
  static const char name[] = "hadamard_transform";
  const sgl_jit_tensor from = detail::read_view(x, name), to = detail::written_view(output, name);
  char message[512];
  const sgl_jit_status status =
      sgl_jit_hadamard_transform(&from, &to, scale, detail::stream_of(from), message, sizeof message);
  TORCH_CHECK(status == SGL_JIT_OK, message);
}

/* Bit i % 8 of y[output_indptr[s] + i / 8] = x[input_indptr[s] + i], for each segment s. cuda_stream: a cudaStream_t,
 * as the deleted function took it: 0 is the default stream, not PyTorch's current one. */
inline void segment_packbits(at::Tensor x, at::Tensor input_indptr, at::Tensor output_indptr, at::Tensor y,
                             int64_t batch_size, int64_t cuda_stream = 0) {
  static const char name[] = "segment_packbits";
  const sgl_jit_tensor from = detail::read_view(x, name), to = detail::written_view(y, name);
  const sgl_jit_tensor starts = detail::read_view(input_indptr, name), places = detail::read_view(output_indptr, name);
  char message[512];
  const sgl_jit_status status = sgl_jit_segment_packbits(
      &from, &starts, &places, &to, batch_size, reinterpret_cast<void *>(cuda_stream), message, sizeof message);
  TORCH_CHECK(status == SGL_JIT_OK, message);
}

/* k_cache[loc[t]] = k[t] and v_cache[loc[t]] = v[t]. */
inline void set_kv_buffer_kernel(at::Tensor k_cache, at::Tensor v_cache, at::Tensor loc, at::Tensor k, at::Tensor v) {
  static const char name[] = "set_kv_buffer_kernel";
  const sgl_jit_tensor keys_to = detail::written_view(k_cache, name), values_to = detail::written_view(v_cache, name);
  const sgl_jit_tensor slots = detail::read_view(loc, name);
  const sgl_jit_tensor keys = detail::read_view(k, name), values = detail::read_view(v, name);
  char message[512];
  const sgl_jit_status status = sgl_jit_set_kv_buffer_kernel(&keys_to, &values_to, &slots, &keys, &values,
                                                             detail::stream_of(keys), message, sizeof message);
  TORCH_CHECK(status == SGL_JIT_OK, message);
}

} // namespace sgl_kernel_jit

#endif
