/* The deleted C++ functions, in C. `at::Tensor &` arrives as a pointer to the at::Tensor, which is what torch's C
 * functions take; the names have no std types, so they are the same for both C++11 ABIs of libstdc++. */
#include "shim/call_log.h"
#include "shim/forward.h"
#include "shim/include/sgl_kernel_compat.h"
#include "shim/serve.h"
#include "shim/stage.h"
#include "shim/throw.h"

#include "compat_table.h"

#include <errno.h>
#include <stdio.h>

/* An at::Tensor that is passed by value is one of the caller's, who destroys it: it arrives as a pointer too. */
typedef void three_tensors(void *output, const void *mat_a, const void *mat_b);
typedef void bmm_tensors(void *a, void *b, void *d, void *a_scale, void *b_scale, void *workspace_buffer,
                         int64_t cublas_handle);

typedef void downcast_tensors(void *k, void *v, void *k_out, void *v_out, void *k_scale, void *v_scale, void *loc,
                              int64_t mult, int64_t offset);
typedef void merge_tensors(void *v_a, void *s_a, void *v_b, void *s_b, void *v_merged, void *s_merged);
typedef void packbits_tensors(void *x, void *input_indptr, void *output_indptr, void *y, int64_t batch_size,
                              int64_t cuda_stream);
typedef void store_tensors(void *k_cache, void *v_cache, void *out_loc, void *k, void *v);
typedef void quant_tensors(void *input, void *output_q, void *output_s, bool is_static);

SGL_COMPAT_API three_tensors dsv3_router_gemm __asm__(COMPAT_MANGLED_dsv3_router_gemm);
SGL_COMPAT_API three_tensors dsv3_fused_a_gemm __asm__(COMPAT_MANGLED_dsv3_fused_a_gemm);
SGL_COMPAT_API bmm_tensors bmm_fp8 __asm__(COMPAT_MANGLED_bmm_fp8);
SGL_COMPAT_API downcast_tensors downcast_fp8 __asm__(COMPAT_MANGLED_downcast_fp8);
SGL_COMPAT_API merge_tensors merge_state __asm__(COMPAT_MANGLED_merge_state);
SGL_COMPAT_API packbits_tensors segment_packbits __asm__(COMPAT_MANGLED_segment_packbits);
SGL_COMPAT_API store_tensors store_kv_cache __asm__(COMPAT_MANGLED_set_kv_buffer_kernel);
SGL_COMPAT_API quant_tensors sgl_per_tensor_quant_fp8 __asm__(COMPAT_MANGLED_sgl_per_tensor_quant_fp8);

/* Returns the function of another library to which the call has to go, or NULL: it is done. A stage that somebody has
 * set holds for such calls too. */
static void *serve(enum serve_kernel kernel, const char *mangled, struct forward *forward, const void *address,
                   void *const tensors[], const uint64_t numbers[]) {
  int saved = errno;
  uint8_t policy = policy_of(serve_symbol(kernel));
  struct usage_site *site = usage_site(SGL_COMPAT_CALL_CXX, serve_symbol(kernel), address);
  usage_count(site, policy_stage(policy));
  sgl_compat_serve how = policy_serve(policy);
  bool may_forward = how == SGL_COMPAT_SERVE_AUTO || how == SGL_COMPAT_SERVE_OLD;
  void *elsewhere = may_forward ? forward_find(forward, mangled, how == SGL_COMPAT_SERVE_OLD ? NULL : address) : NULL;
  if (elsewhere && !(policy & POLICY_IS_SET)) {
    if (call_log_is_on())
      call_log_write(torch_abi_get(), kernel, tensors, "cxx", "forwarded", NULL);
    errno = saved;
    return elsewhere;
  }
  char message[SERVE_MESSAGE];
  void *stream = serve_takes_stream(kernel) ? (void *)(uintptr_t)numbers[serve_numbers(kernel)] : NULL;
  bool done = false,
       allowed = stage_call(SGL_COMPAT_CALL_CXX, serve_symbol(kernel), policy, site, address, message, sizeof message);
  if (allowed && how == SGL_COMPAT_SERVE_OLD && !elsewhere) {
    stage_no_library(kernel, message, sizeof message);
  } else if (allowed && !elsewhere) {
    const struct torch_abi *torch = torch_abi_get();
    if (torch)
      done = serve_run(torch, kernel, tensors, numbers, serve_takes_stream(kernel) ? &stream : NULL, message,
                       sizeof message);
    else
      snprintf(message, sizeof message, "%s: %s", serve_name(kernel), torch_abi_why().text);
  }
  if (!allowed && policy & POLICY_IS_SET)
    elsewhere = NULL;
  else if (!done && !elsewhere && how == SGL_COMPAT_SERVE_AUTO)
    elsewhere = forward_find(forward, mangled, NULL); /* somebody else may be able to */
  if (call_log_is_on())
    call_log_write(torch_abi_get(), kernel, tensors, "cxx",
                   done        ? "ok"
                   : elsewhere ? "forwarded"
                               : "error",
                   done || elsewhere ? NULL : message);
  errno = saved;
  if (!done && !elsewhere) {
    usage_failed(site);
    throw_error(serve_name(kernel), message);
  }
  return elsewhere;
}

void dsv3_router_gemm(void *output, const void *mat_a, const void *mat_b) {
  static struct forward forward;
  three_tensors *elsewhere =
      (three_tensors *)serve(SERVE_DSV3_ROUTER_GEMM, COMPAT_MANGLED_dsv3_router_gemm, &forward,
                             __builtin_return_address(0), (void *const[]){output, (void *)mat_a, (void *)mat_b}, NULL);
  if (elsewhere)
    elsewhere(output, mat_a, mat_b);
}

void dsv3_fused_a_gemm(void *output, const void *mat_a, const void *mat_b) {
  static struct forward forward;
  three_tensors *elsewhere =
      (three_tensors *)serve(SERVE_DSV3_FUSED_A_GEMM, COMPAT_MANGLED_dsv3_fused_a_gemm, &forward,
                             __builtin_return_address(0), (void *const[]){output, (void *)mat_a, (void *)mat_b}, NULL);
  if (elsewhere)
    elsewhere(output, mat_a, mat_b);
}

void bmm_fp8(void *a, void *b, void *d, void *a_scale, void *b_scale, void *workspace_buffer, int64_t cublas_handle) {
  static struct forward forward;
  bmm_tensors *elsewhere = (bmm_tensors *)serve(
      SERVE_BMM_FP8, COMPAT_MANGLED_bmm_fp8, &forward, __builtin_return_address(0),
      (void *const[]){a, b, d, a_scale, b_scale, workspace_buffer}, (const uint64_t[]){(uint64_t)cublas_handle});
  if (elsewhere)
    elsewhere(a, b, d, a_scale, b_scale, workspace_buffer, cublas_handle);
}

void downcast_fp8(void *k, void *v, void *k_out, void *v_out, void *k_scale, void *v_scale, void *loc, int64_t mult,
                  int64_t offset) {
  static struct forward forward;
  downcast_tensors *elsewhere = (downcast_tensors *)serve(
      SERVE_DOWNCAST_FP8, COMPAT_MANGLED_downcast_fp8, &forward, __builtin_return_address(0),
      (void *const[]){k, v, k_out, v_out, k_scale, v_scale, loc}, (const uint64_t[]){(uint64_t)mult, (uint64_t)offset});
  if (elsewhere)
    elsewhere(k, v, k_out, v_out, k_scale, v_scale, loc, mult, offset);
}

void sgl_per_tensor_quant_fp8(void *input, void *output_q, void *output_s, bool is_static) {
  static struct forward forward;
  quant_tensors *elsewhere = (quant_tensors *)serve(
      SERVE_PER_TENSOR_QUANT_FP8, COMPAT_MANGLED_sgl_per_tensor_quant_fp8, &forward, __builtin_return_address(0),
      (void *const[]){input, output_q, output_s}, (const uint64_t[]){is_static});
  if (elsewhere)
    elsewhere(input, output_q, output_s, is_static);
}

void merge_state(void *v_a, void *s_a, void *v_b, void *s_b, void *v_merged, void *s_merged) {
  static struct forward forward;
  merge_tensors *elsewhere =
      (merge_tensors *)serve(SERVE_MERGE_STATE, COMPAT_MANGLED_merge_state, &forward, __builtin_return_address(0),
                             (void *const[]){v_a, s_a, v_b, s_b, v_merged, s_merged}, NULL);
  if (elsewhere)
    elsewhere(v_a, s_a, v_b, s_b, v_merged, s_merged);
}

void segment_packbits(void *x, void *input_indptr, void *output_indptr, void *y, int64_t batch_size,
                      int64_t cuda_stream) {
  static struct forward forward;
  packbits_tensors *elsewhere =
      (packbits_tensors *)serve(SERVE_SEGMENT_PACKBITS, COMPAT_MANGLED_segment_packbits, &forward,
                                __builtin_return_address(0), (void *const[]){x, input_indptr, output_indptr, y},
                                (const uint64_t[]){(uint64_t)batch_size, (uint64_t)cuda_stream});
  if (elsewhere)
    elsewhere(x, input_indptr, output_indptr, y, batch_size, cuda_stream);
}

void store_kv_cache(void *k_cache, void *v_cache, void *out_loc, void *k, void *v) {
  static struct forward forward;
  store_tensors *elsewhere =
      (store_tensors *)serve(SERVE_SET_KV_BUFFER_KERNEL, COMPAT_MANGLED_set_kv_buffer_kernel, &forward,
                             __builtin_return_address(0), (void *const[]){k_cache, v_cache, out_loc, k, v}, NULL);
  if (elsewhere)
    elsewhere(k_cache, v_cache, out_loc, k, v);
}
