/* sgl_per_tensor_quant_fp8: a tensor to float8_e4m3fn with one scale. */
#include "native.h"
#include <math.h>
#include <string.h>

enum { INPUT, OUTPUT_Q, OUTPUT_S, TENSORS };
enum { IS_STATIC };
enum { THREADS = 512, PIECE = 16, MOST_BLOCKS = 132 * 8 };
#define MOST 448.0F /* of float8_e4m3fn */

static const sgl_jit_dtype in_types[] = {SGL_JIT_DTYPE_FLOAT32, SGL_JIT_DTYPE_BFLOAT16, SGL_JIT_DTYPE_FLOAT16,
                                         SGL_JIT_DTYPE_OTHER};
static const sgl_jit_dtype out_types[] = {SGL_JIT_DTYPE_FLOAT8_E4M3FN, SGL_JIT_DTYPE_UINT8, SGL_JIT_DTYPE_OTHER};
static const sgl_jit_dtype scale_types[] = {SGL_JIT_DTYPE_FLOAT32, SGL_JIT_DTYPE_OTHER};

static sgl_jit_status check(const sgl_jit_tensor *const t[], const int64_t numbers[], struct jit_call *call,
                            struct jit_message m) {
  const struct jit_argument a[TENSORS] = {{"input", t[INPUT]}, {"output_q", t[OUTPUT_Q]}, {"output_s", t[OUTPUT_S]}};
  sgl_jit_status status;
  if ((status = jit_check_tensors(a, TENSORS, m)) || (status = jit_check_dtype(&a[INPUT], in_types, m)) ||
      (status = jit_check_dtype(&a[OUTPUT_Q], out_types, m)) ||
      (status = jit_check_dtype(&a[OUTPUT_S], scale_types, m)) ||
      (status = jit_check_same_count(&a[OUTPUT_Q], &a[INPUT], m)) || (status = jit_check_one(&a[OUTPUT_S], m)))
    return status;
  for (int i = 0; i < TENSORS; i++)
    if ((status = jit_check_contiguous(&a[i], m)))
      return status;
  if ((status = jit_check_places(a, TENSORS, m)) || (status = jit_check_apart(&a[OUTPUT_Q], &a[INPUT], m)) ||
      (status = jit_check_apart(&a[OUTPUT_S], &a[INPUT], m)) ||
      (status = jit_check_apart(&a[OUTPUT_Q], &a[OUTPUT_S], m)))
    return status;
  *call = (struct jit_call){.cuda = t[INPUT]->device_type == SGL_JIT_DEVICE_CUDA,
                            .device = t[INPUT]->device_index,
                            .empty = jit_elements(t[INPUT]) == 0,
                            .dtype = t[INPUT]->dtype,
                            .is_static = numbers[IS_STATIC] != 0,
                            .a.quant = {.input = t[INPUT]->data,
                                        .output = t[OUTPUT_Q]->data,
                                        .scale = t[OUTPUT_S]->data,
                                        .count = jit_elements(t[INPUT])}};
  return SGL_JIT_OK;
}

/* As integers, which is how the kernel compares: of numbers that are not negative the same. */
static void raise(float *scale, float to) {
  int32_t old, other;
  memcpy(&old, scale, sizeof old);
  memcpy(&other, &to, sizeof other);
  if (other > old)
    *scale = to;
}

/* In float32, as the kernel: the scale decides every output, so it has to be the same to the bit. */
static sgl_jit_status reference(const struct jit_call *call, struct jit_message m) {
  (void)m;
  const struct per_tensor_quant *q = &call->a.quant;
  float most = 0;
  for (int64_t i = 0; !call->is_static && i < q->count; i++)
    most = fmaxf(most, fabsf((float)jit_number(call->dtype, q->input, i)));
  if (!call->is_static)
    raise(q->scale, most / MOST);
  float inverse = 1.0F / *q->scale;
  for (int64_t i = 0; i < q->count; i++) {
    float value = (float)jit_number(call->dtype, q->input, i) * inverse;
    ((uint8_t *)q->output)[i] = jit_to_e4m3((double)fmaxf(fminf(value, MOST), -MOST));
  }
  return SGL_JIT_OK;
}

static int steps(const struct jit_call *call, struct jit_step step[]) {
  int64_t blocks = (call->a.quant.count + THREADS * PIECE - 1) / (THREADS * PIECE);
  int type = call->dtype == SGL_JIT_DTYPE_FLOAT32 ? 0 : call->dtype == SGL_JIT_DTYPE_BFLOAT16 ? 1 : 2, count = 0;
  if (blocks > MOST_BLOCKS)
    blocks = MOST_BLOCKS;
  if (!call->is_static)
    step[count++] = (struct jit_step){.entry = type, .blocks = blocks};
  step[count++] = (struct jit_step){.entry = 3 + type, .blocks = blocks};
  return count;
}

static const struct jit_native quant = {JIT_PER_TENSOR_QUANT_FP8, check, reference, steps};

sgl_jit_status sgl_jit_sgl_per_tensor_quant_fp8(const sgl_jit_tensor *input, const sgl_jit_tensor *output_q,
                                                const sgl_jit_tensor *output_s, int is_static, void *stream,
                                                char *message, size_t message_size) {
  const sgl_jit_tensor *const t[] = {input, output_q, output_s};
  return jit_native_run(&quant, false, t, (const int64_t[]){is_static}, stream, message, message_size);
}

sgl_jit_status sgl_jit_reference_sgl_per_tensor_quant_fp8(const sgl_jit_tensor *input, const sgl_jit_tensor *output_q,
                                                          const sgl_jit_tensor *output_s, int is_static, char *message,
                                                          size_t message_size) {
  const sgl_jit_tensor *const t[] = {input, output_q, output_s};
  return jit_native_run(&quant, true, t, (const int64_t[]){is_static}, NULL, message, message_size);
}
