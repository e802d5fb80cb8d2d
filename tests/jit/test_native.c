/* The operators with one kernel for every shape: the kernels' own text on the CPU (emulated_elements.cuh) against the
 * reference, and the reference against values that are written here; what is refused, and how. tests/python has them
 * against torch. */
#include "jit/native.h"
#include "support.h"

static struct fakes fakes;

static void start(void (*body)(void)) {
  struct path cache = make_temporary();
  setenv("SGL_KERNEL_JIT_CACHE_DIR", cache.text, 1);
  fakes = use_fakes("fake_cuda.so");
  in_child(body);
  remove_tree(cache);
}

/* --- tensors --- */

enum { MOST = 8, MOST_DIMS = 3 };

struct operand {
  sgl_jit_tensor t;
  int64_t sizes[MOST_DIMS], strides[MOST_DIMS];
  struct guarded memory;
  size_t bytes;
};

/* Contiguous; the sizes end with a 0 that is none of them. `shift`: bytes that the first element lies past a multiple
 * of 16. */
static void make(struct operand *o, sgl_jit_dtype dtype, int ndim, const int64_t sizes[], size_t shift) {
  int64_t count = 1;
  for (int d = ndim - 1; d >= 0; d--) {
    o->sizes[d] = sizes[d];
    o->strides[d] = count;
    count *= sizes[d];
  }
  o->bytes = (size_t)count * jit_element_size(dtype);
  o->memory = guarded_alloc(o->bytes + shift, (o->bytes + shift) % 16 == 0);
  o->t = (sgl_jit_tensor){(char *)o->memory.data + shift, dtype, SGL_JIT_DEVICE_CPU, 0, ndim, o->sizes, o->strides};
}

static void release(struct operand o[], int count) {
  for (int i = 0; i < count; i++)
    guarded_free(o[i].memory);
}

static void to_cuda(struct operand o[], int count, bool cuda) {
  for (int i = 0; i < count; i++)
    o[i].t.device_type = cuda ? SGL_JIT_DEVICE_CUDA : SGL_JIT_DEVICE_CPU;
}

static uint64_t state = 1;
static double random_value(double most) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return ((double)(state >> 11) / (double)(1ull << 53) * 2 - 1) * most;
}

/* Values of all sizes, and now and then one that is not finite. */
static void fill(struct operand *o, double most, bool not_finite) {
  static const double bad[] = {(double)INFINITY, -(double)INFINITY, (double)NAN, 0, -0.0};
  size_t count = o->bytes / jit_element_size(o->t.dtype);
  for (size_t i = 0; i < count; i++) {
    double value = random_value(1) * exp2(random_value(log2(most)));
    jit_put_number(o->t.dtype, o->t.data, (int64_t)i, not_finite && i % 97 == 0 ? bad[i / 97 % 5] : value);
  }
}

/* --- downcast_fp8 --- */

enum { K, V, K_OUT, V_OUT, K_SCALE, V_SCALE, LOC, DOWNCAST };

struct shape {
  int64_t tokens, heads, dim, slots;
  int64_t mult, offset;
  size_t shift;
};

static void downcast_make(struct operand o[], sgl_jit_dtype dtype, const struct shape *s) {
  const int64_t in[] = {s->tokens, s->heads, s->dim}, out[] = {s->slots, s->heads, s->dim}, one[] = {1};
  for (int i = 0; i < DOWNCAST; i++)
    make(&o[i],
         i <= V         ? dtype
         : i <= V_OUT   ? SGL_JIT_DTYPE_FLOAT8_E4M3FN
         : i <= V_SCALE ? SGL_JIT_DTYPE_FLOAT32
                        : SGL_JIT_DTYPE_INT64,
         i <= V_OUT ? 3 : 1,
         i <= V         ? in
         : i <= V_OUT   ? out
         : i <= V_SCALE ? one
                        : (const int64_t[]){s->tokens},
         i <= V ? s->shift : 0);
  fill(&o[K], 4096, true);
  fill(&o[V], 4096, true);
  *(float *)o[K_SCALE].t.data = 1.7F;
  *(float *)o[V_SCALE].t.data = 0.031F;
  for (int64_t t = 0; t < s->tokens; t++)
    ((int64_t *)o[LOC].t.data)[t] = (t * 7 + 3) % s->tokens;
}

static sgl_jit_status downcast(const struct operand o[], const struct shape *s, bool reference, char *message) {
  *message = '\0';
  return reference ? sgl_jit_reference_downcast_fp8(&o[0].t, &o[1].t, &o[2].t, &o[3].t, &o[4].t, &o[5].t, &o[6].t,
                                                    s->mult, s->offset, message, 512)
                   : sgl_jit_downcast_fp8(&o[0].t, &o[1].t, &o[2].t, &o[3].t, &o[4].t, &o[5].t, &o[6].t, s->mult,
                                          s->offset, NULL, message, 512);
}

/* The kernel's outputs and the reference's, the rest of the slots untouched in both. */
static void downcast_body(void) {
  static const struct shape shapes[] = {
      {1, 1, 16, 1, 1, 0, 0},   {5, 2, 24, 11, 2, 1, 0}, {5, 2, 24, 11, 2, 1, 2},   {13, 3, 64, 13, 1, 0, 0},
      {13, 3, 64, 13, 1, 0, 2}, {3, 1, 5, 3, 1, 0, 0},   {40, 8, 128, 40, 1, 0, 0},
  };
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    for (int half = 0; half < 2; half++) {
      const struct shape *s = &shapes[i];
      struct operand o[DOWNCAST];
      char message[512];
      downcast_make(o, half ? SGL_JIT_DTYPE_FLOAT16 : SGL_JIT_DTYPE_BFLOAT16, s);
      unsigned char *want = malloc(2 * o[K_OUT].bytes);
      for (int out = 0; out < 2; out++)
        memset(o[K_OUT + out].t.data, 0xee, o[K_OUT].bytes);
      CU_ASSERT_EQUAL(downcast(o, s, true, message), SGL_JIT_OK);
      UNIT_STRINGS(message, "");
      for (int out = 0; out < 2; out++) {
        memcpy(want + (size_t)out * o[K_OUT].bytes, o[K_OUT + out].t.data, o[K_OUT].bytes);
        memset(o[K_OUT + out].t.data, 0xee, o[K_OUT].bytes);
      }
      to_cuda(o, DOWNCAST, true);
      CU_ASSERT_EQUAL(downcast(o, s, false, message), SGL_JIT_OK);
      UNIT_STRINGS(message, "");
      bool whole = s->heads * s->dim % 16 == 0 && s->shift == 0;
      UNIT_STRINGS(fakes.cuda->entry, half    ? whole ? "downcast_fp16" : "downcast_fp16_any"
                                      : whole ? "downcast_bf16"
                                              : "downcast_bf16_any");
      for (int out = 0; out < 2; out++)
        CU_ASSERT_EQUAL(memcmp(want + (size_t)out * o[K_OUT].bytes, o[K_OUT + out].t.data, o[K_OUT].bytes), 0);
      free(want);
      release(o, DOWNCAST);
    }
}

/* k = 1 and scales that round: 1 / bf16(0.3) = 1 / 0.30078125 = 3.3246..., in bf16 3.328125, in e4m3 3.25. */
static void downcast_values(void) {
  const struct shape s = {1, 1, 8, 1, 1, 0, 0};
  const float in[] = {1, 1000, -1000, 0, -0.0F, NAN, INFINITY, 0x1p-12F};
  const unsigned char want[] = {0x45, 0x7e, 0xfe, 0, 0x80, 0x7f, 0x7e, 0x00};
  struct operand o[DOWNCAST];
  char message[512];
  downcast_make(o, SGL_JIT_DTYPE_BFLOAT16, &s);
  for (int i = 0; i < 8; i++)
    jit_put_number(SGL_JIT_DTYPE_BFLOAT16, o[K].t.data, i, (double)in[i]);
  *(float *)o[K_SCALE].t.data = 0.3F;
  CU_ASSERT_EQUAL(downcast(o, &s, true, message), SGL_JIT_OK);
  CU_ASSERT_EQUAL(memcmp(o[K_OUT].t.data, want, sizeof want), 0);
  release(o, DOWNCAST);
}

/* A slot that there is not: an error of the reference, nothing on a device. */
static void downcast_outside_body(void) {
  const struct shape s = {3, 1, 16, 3, 1, 0, 0};
  for (int64_t bad = -1; bad <= 3; bad += 4) {
    struct operand o[DOWNCAST];
    char message[512];
    downcast_make(o, SGL_JIT_DTYPE_FLOAT16, &s);
    ((int64_t *)o[LOC].t.data)[1] = bad;
    CU_ASSERT_EQUAL(downcast(o, &s, true, message), SGL_JIT_ERROR_INVALID_ARGUMENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(message, "downcast_fp8: loc[1] * mult + offset must be one of the 3 slots of k_out"));
    to_cuda(o, DOWNCAST, true);
    memset(o[K_OUT].t.data, 0xee, o[K_OUT].bytes);
    CU_ASSERT_EQUAL(downcast(o, &s, false, message), SGL_JIT_OK);
    int untouched = 0;
    for (size_t i = 0; i < o[K_OUT].bytes; i++)
      untouched += ((unsigned char *)o[K_OUT].t.data)[i] == 0xee;
    CU_ASSERT_EQUAL(untouched, 16);
    release(o, DOWNCAST);
  }
}

static void downcast_refuses(void) {
  static const char *const texts[] = {
      "v must have the sizes (4, 2, 8) like k, got (4, 2, 4)",
      "k must be bfloat16 or float16, got float32",
      "loc must be int64, got int32",
      "k_scale must be float32, got float16",
      "v_out must be float8_e4m3fn like k_out, got uint8",
      "k_out must have whole slots of 16 elements (k.size(1) * k.size(2)), got 72 elements",
      "k must be contiguous, got strides (16, 16, 1) of the sizes (4, 2, 8); call .contiguous()",
      "loc must have an element for each of the 4 tokens of k, got 3",
      "v_out must be on the CPU like k, got cuda:0",
      "v_out must not overlap k_out",
      "k_scale must have one element, got the sizes (2)",
      "v is NULL",
      "k must have 3 dimensions, got 2",
  };
  const struct shape s = {4, 2, 8, 9, 1, 0, 0};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct operand o[DOWNCAST];
    char message[512] = "", want[256];
    downcast_make(o, SGL_JIT_DTYPE_BFLOAT16, &s);
    const sgl_jit_tensor *v = &o[V].t;
    switch (i) {
    case 0:
      o[V].sizes[2] = 4;
      break;
    case 1:
      o[K].t.dtype = SGL_JIT_DTYPE_FLOAT32;
      break;
    case 2:
      o[LOC].t.dtype = SGL_JIT_DTYPE_INT32;
      break;
    case 3:
      o[K_SCALE].t.dtype = SGL_JIT_DTYPE_FLOAT16;
      break;
    case 4:
      o[V_OUT].t.dtype = SGL_JIT_DTYPE_UINT8;
      break;
    case 5:
      o[K_OUT].sizes[2] = o[V_OUT].sizes[2] = 4;
      break;
    case 6:
      o[K].strides[1] = 16;
      break;
    case 7:
      o[LOC].sizes[0] = 3;
      break;
    case 8:
      o[V_OUT].t.device_type = SGL_JIT_DEVICE_CUDA;
      break;
    case 9:
      o[V_OUT].t.data = (char *)o[K_OUT].t.data + 1;
      break;
    case 10:
      o[K_SCALE].sizes[0] = 2;
      break;
    case 11:
      v = NULL;
      break;
    case 12:
      o[K].t.ndim = 2;
      break;
    }
    CU_ASSERT_EQUAL(sgl_jit_reference_downcast_fp8(&o[K].t, v, &o[K_OUT].t, &o[V_OUT].t, &o[K_SCALE].t, &o[V_SCALE].t,
                                                   &o[LOC].t, 1, 0, message, sizeof message),
                    SGL_JIT_ERROR_INVALID_ARGUMENT);
    snprintf(want, sizeof want, "downcast_fp8: %s", texts[i]);
    UNIT_STRINGS(message, want);
    release(o, DOWNCAST);
  }
}

/* --- sgl_per_tensor_quant_fp8 --- */

enum { INPUT, OUTPUT_Q, OUTPUT_S, QUANT };

static void quant_make(struct operand o[], sgl_jit_dtype dtype, int64_t rows, int64_t columns, size_t shift) {
  make(&o[INPUT], dtype, 2, (const int64_t[]){rows, columns}, shift);
  make(&o[OUTPUT_Q], SGL_JIT_DTYPE_FLOAT8_E4M3FN, 2, (const int64_t[]){rows, columns}, 0);
  make(&o[OUTPUT_S], SGL_JIT_DTYPE_FLOAT32, 1, (const int64_t[]){1}, 0);
  fill(&o[INPUT], 300, false);
}

static sgl_jit_status quant(const struct operand o[], bool is_static, bool reference, char *message) {
  *message = '\0';
  return reference ? sgl_jit_reference_sgl_per_tensor_quant_fp8(&o[0].t, &o[1].t, &o[2].t, is_static, message, 512)
                   : sgl_jit_sgl_per_tensor_quant_fp8(&o[0].t, &o[1].t, &o[2].t, is_static, NULL, message, 512);
}

static void quant_body(void) {
  static const int64_t shapes[][2] = {{1, 1}, {1, 16}, {3, 5}, {7, 24}, {64, 129}, {130, 1024}};
  static const sgl_jit_dtype dtypes[] = {SGL_JIT_DTYPE_FLOAT32, SGL_JIT_DTYPE_BFLOAT16, SGL_JIT_DTYPE_FLOAT16};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    for (int d = 0; d < 3; d++)
      for (int is_static = 0; is_static < 2; is_static++) {
        struct operand o[QUANT];
        char message[512];
        quant_make(o, dtypes[d], shapes[i][0], shapes[i][1], i % 2 ? 4 : 0);
        float first = is_static ? 0.37F : 0, want_scale;
        *(float *)o[OUTPUT_S].t.data = first;
        CU_ASSERT_EQUAL(quant(o, is_static, true, message), SGL_JIT_OK);
        UNIT_STRINGS(message, "");
        unsigned char *want = malloc(o[OUTPUT_Q].bytes);
        memcpy(want, o[OUTPUT_Q].t.data, o[OUTPUT_Q].bytes);
        memset(o[OUTPUT_Q].t.data, 0xee, o[OUTPUT_Q].bytes);
        want_scale = *(float *)o[OUTPUT_S].t.data;
        *(float *)o[OUTPUT_S].t.data = first;
        to_cuda(o, QUANT, true);
        CU_ASSERT_EQUAL(quant(o, is_static, false, message), SGL_JIT_OK);
        UNIT_STRINGS(message, "");
        CU_ASSERT_EQUAL(*(float *)o[OUTPUT_S].t.data, want_scale);
        CU_ASSERT_EQUAL(memcmp(want, o[OUTPUT_Q].t.data, o[OUTPUT_Q].bytes), 0);
        free(want);
        release(o, QUANT);
      }
}

/* The greatest size 896: a scale of 2 and a half of everything; what the scale was before counts too; NaNs do not. */
static void quant_values(void) {
  const float in[] = {-896, 1, 3, NAN, 0x1p-9F, -100};
  const unsigned char halves[] = {0xfe, 0x30, 0x3c, 0x7e, 0x00, 0xe4},
                      quarters[] = {0xf6, 0x28, 0x34, 0x7e, 0x00, 0xdc};
  struct operand o[QUANT];
  char message[512];
  quant_make(o, SGL_JIT_DTYPE_FLOAT32, 1, 6, 0);
  memcpy(o[INPUT].t.data, in, sizeof in);
  *(float *)o[OUTPUT_S].t.data = 0;
  CU_ASSERT_EQUAL(quant(o, false, true, message), SGL_JIT_OK);
  CU_ASSERT_EQUAL(*(float *)o[OUTPUT_S].t.data, 2.0F);
  CU_ASSERT_EQUAL(memcmp(o[OUTPUT_Q].t.data, halves, sizeof halves), 0);
  *(float *)o[OUTPUT_S].t.data = 4;
  CU_ASSERT_EQUAL(quant(o, false, true, message), SGL_JIT_OK);
  CU_ASSERT_EQUAL(*(float *)o[OUTPUT_S].t.data, 4.0F);
  CU_ASSERT_EQUAL(memcmp(o[OUTPUT_Q].t.data, quarters, sizeof quarters), 0);
  release(o, QUANT);
}

static void quant_refuses(void) {
  struct operand o[QUANT];
  char message[512];
  quant_make(o, SGL_JIT_DTYPE_FLOAT32, 4, 4, 0);
  o[OUTPUT_Q].sizes[1] = 3;
  CU_ASSERT_EQUAL(quant(o, false, true, message), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_STRINGS(message, "sgl_per_tensor_quant_fp8: output_q must have as many elements as input, 16, got 12");
  o[OUTPUT_Q].sizes[1] = 4;
  o[INPUT].t.dtype = SGL_JIT_DTYPE_INT32;
  CU_ASSERT_EQUAL(quant(o, false, true, message), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_STRINGS(message, "sgl_per_tensor_quant_fp8: input must be float32, bfloat16 or float16, got int32");
  o[INPUT].t.dtype = SGL_JIT_DTYPE_FLOAT32;
  o[INPUT].t.data = (char *)o[INPUT].t.data + 2;
  CU_ASSERT_EQUAL(quant(o, false, true, message), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_STRINGS(message,
               "sgl_per_tensor_quant_fp8: input must start at a multiple of 4 bytes, got one that starts 2 bytes past");
  CU_ASSERT_EQUAL(quant(o, false, false, message), SGL_JIT_ERROR_INVALID_ARGUMENT);
  o[INPUT].t.data = (char *)o[INPUT].t.data - 2;
  CU_ASSERT_EQUAL(quant(o, false, false, message), SGL_JIT_ERROR_UNSUPPORTED); /* the backend is auto */
  release(o, QUANT);
}

/* --- the others: by the reference, whose own results are compared with torch's (tests/native_cases.py) --- */

/* Elements whose numbers differ by more than a step of their dtype and `slack`. */
static int far(const struct operand *have, const void *want, double slack) {
  static const double steps[] = {
      [SGL_JIT_DTYPE_FLOAT32] = 0x1p-22, [SGL_JIT_DTYPE_BFLOAT16] = 0x1p-7, [SGL_JIT_DTYPE_FLOAT16] = 0x1p-10};
  int wrong = 0;
  for (size_t i = 0; i < have->bytes / jit_element_size(have->t.dtype); i++) {
    double a = jit_number(have->t.dtype, have->t.data, (int64_t)i), b = jit_number(have->t.dtype, want, (int64_t)i);
    wrong += !(fabs(a - b) <= fabs(b) * steps[have->t.dtype] + slack) && !(isnan(a) && isnan(b));
  }
  return wrong;
}

/* Runs `call` on the reference and on the device; output i is then the device's, want[i] the reference's (malloc). */
typedef sgl_jit_status call_function(const struct operand o[], bool reference, char *message);
static void both(call_function *call, struct operand o[], int count, int first, int outputs, void *want[]) {
  char message[512] = "";
  for (int i = first; i < first + outputs; i++)
    memset(o[i].t.data, 0x55, o[i].bytes);
  CU_ASSERT_EQUAL(call(o, true, message), SGL_JIT_OK);
  UNIT_STRINGS(message, "");
  for (int i = first; i < first + outputs; i++) {
    want[i - first] = malloc(o[i].bytes + 1);
    memcpy(want[i - first], o[i].t.data, o[i].bytes);
    memset(o[i].t.data, 0x55, o[i].bytes);
  }
  to_cuda(o, count, true);
  CU_ASSERT_EQUAL(call(o, false, message), SGL_JIT_OK);
  UNIT_STRINGS(message, "");
}

static sgl_jit_status merge(const struct operand o[], bool reference, char *message) {
  return reference ? sgl_jit_reference_merge_state(&o[0].t, &o[1].t, &o[2].t, &o[3].t, &o[4].t, &o[5].t, message, 512)
                   : sgl_jit_merge_state(&o[0].t, &o[1].t, &o[2].t, &o[3].t, &o[4].t, &o[5].t, NULL, message, 512);
}

static void merge_body(void) {
  static const int64_t shapes[][3] = {{1, 1, 8},   {3, 2, 64},  {5, 3, 128}, {2, 2, 7},
                                      {1, 5, 520}, {17, 4, 40}, {2, 1, 1}};
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (int half = 0; half < 2; half++) {
      struct operand o[6];
      void *want[2];
      for (int i = 0; i < 6; i++) {
        make(&o[i],
             i % 2  ? SGL_JIT_DTYPE_FLOAT32
             : half ? SGL_JIT_DTYPE_FLOAT16
                    : SGL_JIT_DTYPE_BFLOAT16,
             i % 2 ? 2 : 3, shapes[s], 0);
        fill(&o[i], 8, false);
      }
      ((float *)o[1].t.data)[0] = -INFINITY; /* of one: all is b's */
      both(merge, o, 6, 4, 2, want);
      bool whole = shapes[s][2] % 8 == 0;
      UNIT_STRINGS(fakes.cuda->entry, half    ? whole ? "merge_fp16" : "merge_fp16_any"
                                      : whole ? "merge_bf16"
                                              : "merge_bf16_any");
      CU_ASSERT_EQUAL(far(&o[4], want[0], 1e-5), 0);
      CU_ASSERT_EQUAL(far(&o[5], want[1], 1e-5), 0);
      /* In place: the same. */
      unsigned char *apart = malloc(o[4].bytes);
      char message[512] = "";
      memcpy(apart, o[4].t.data, o[4].bytes);
      CU_ASSERT_EQUAL(sgl_jit_merge_state(&o[0].t, &o[1].t, &o[2].t, &o[3].t, &o[0].t, &o[3].t, NULL, message, 512),
                      SGL_JIT_OK);
      CU_ASSERT_EQUAL(memcmp(o[0].t.data, apart, o[4].bytes), 0);
      CU_ASSERT_EQUAL(memcmp(o[3].t.data, o[5].t.data, o[5].bytes), 0);
      free(apart);
      free(want[0]);
      free(want[1]);
      release(o, 6);
    }
}

static sgl_jit_status transform(const struct operand o[], bool reference, char *message) {
  return reference ? sgl_jit_reference_hadamard_transform(&o[0].t, &o[1].t, 0.37, message, 512)
                   : sgl_jit_hadamard_transform(&o[0].t, &o[1].t, 0.37, NULL, message, 512);
}

/* All sizes of the stages, rows apart and together, not whole, many in a block. */
static void hadamard_body(void) {
  static const int64_t shapes[][2] = {{1, 1},    {3, 2},    {2, 3},      {5, 8},     {300, 16}, {7, 32},
                                      {3, 64},   {2, 100},  {9, 128},    {3, 256},   {5, 512},  {2, 1024},
                                      {1, 2048}, {2, 4096}, {140, 4090}, {1, 16384}, {1, 32760}};
  static const sgl_jit_dtype dtypes[] = {SGL_JIT_DTYPE_FLOAT32, SGL_JIT_DTYPE_BFLOAT16, SGL_JIT_DTYPE_FLOAT16};
  static const char *const entries[] = {"hadamard_fp32", "hadamard_bf16", "hadamard_fp16"};
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (int d = 0; d < 3; d++) {
      struct operand o[2];
      void *want;
      make(&o[0], dtypes[d], 2, shapes[s], s % 3 == 1 ? 4 : 0);
      make(&o[1], dtypes[d], 2, shapes[s], 0);
      fill(&o[0], 4, false);
      both(transform, o, 2, 1, 1, &want);
      UNIT_STRINGS(fakes.cuda->entry, entries[d]);
      CU_ASSERT_EQUAL(far(&o[1], want, 2e-5 * sqrt((double)shapes[s][1])), 0);
      free(want);
      release(o, 2);
    }
  /* Every other row. */
  struct operand o[2];
  void *want;
  make(&o[0], SGL_JIT_DTYPE_FLOAT16, 2, (const int64_t[]){8, 64}, 0);
  make(&o[1], SGL_JIT_DTYPE_FLOAT16, 2, (const int64_t[]){4, 64}, 0);
  fill(&o[0], 4, false);
  o[0].sizes[0] = 4;
  o[0].strides[0] = 128;
  both(transform, o, 2, 1, 1, &want);
  CU_ASSERT_EQUAL(far(&o[1], want, 1e-4), 0);
  free(want);
  release(o, 2);
}

/* Rows that need more shared memory than a block may have. */
static void hadamard_small_device_body(void) {
  struct operand o[2];
  char message[512] = "";
  fakes.cuda->shared_optin = 99 * 1024;
  for (int long_row = 0; long_row < 2; long_row++) {
    for (int i = 0; i < 2; i++)
      make(&o[i], SGL_JIT_DTYPE_FLOAT32, 1, (const int64_t[]){long_row ? 16392 : 16384}, 0);
    fill(&o[0], 4, false);
    to_cuda(o, 2, true);
    CU_ASSERT_EQUAL(transform(o, false, message), long_row ? SGL_JIT_ERROR_UNSUPPORTED : SGL_JIT_OK);
    UNIT_STRINGS(message,
                 long_row
                     ? "hadamard_transform: rows of this size need 147456 bytes of shared memory, the device gives a "
                       "block 101376"
                     : "");
    release(o, 2);
  }
}

static sgl_jit_status pack(const struct operand o[], bool reference, char *message) {
  int64_t segments = o[1].sizes[0] - 1;
  return reference ? sgl_jit_reference_segment_packbits(&o[0].t, &o[1].t, &o[2].t, &o[3].t, segments, message, 512)
                   : sgl_jit_segment_packbits(&o[0].t, &o[1].t, &o[2].t, &o[3].t, segments, NULL, message, 512);
}

static void pack_make(struct operand o[], const int32_t lengths[], int segments, size_t shift) {
  int64_t bits = 0, bytes = 0;
  for (int s = 0; s < segments; s++) {
    bits += lengths[s];
    bytes += (lengths[s] + 7) / 8;
  }
  make(&o[0], SGL_JIT_DTYPE_BOOL, 1, &bits, shift);
  for (int i = 1; i < 3; i++)
    make(&o[i], SGL_JIT_DTYPE_INT32, 1, (const int64_t[]){segments + 1}, 0);
  make(&o[3], SGL_JIT_DTYPE_UINT8, 1, &bytes, 0);
  for (int64_t i = 0; i < bits; i++)
    ((unsigned char *)o[0].t.data)[i] = random_value(1) > 0;
  int32_t *from = o[1].t.data, *to = o[2].t.data;
  from[0] = to[0] = 0;
  for (int s = 0; s < segments; s++) {
    from[s + 1] = from[s] + lengths[s];
    to[s + 1] = to[s] + (lengths[s] + 7) / 8;
  }
}

static void packbits_body(void) {
  static const int32_t lengths[] = {8, 1, 0, 7, 9, 64, 16, 3000, 17, 8, 20000};
  for (int segments = 1; segments <= 11; segments++)
    for (size_t shift = 0; shift < 2; shift++) {
      struct operand o[4];
      void *want;
      pack_make(o, lengths, segments, shift);
      both(pack, o, 4, 3, 1, &want);
      CU_ASSERT_EQUAL(memcmp(o[3].t.data, want, o[3].bytes), 0);
      free(want);
      release(o, 4);
    }
}

static void packbits_values(void) {
  const unsigned char x[] = {1, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1}, want[] = {0x8d, 0x01, 0x01};
  struct operand o[4];
  char message[512];
  pack_make(o, (const int32_t[]){9, 2}, 2, 0);
  memcpy(o[0].t.data, x, sizeof x);
  ((unsigned char *)o[0].t.data)[9] = 1;
  CU_ASSERT_EQUAL(pack(o, true, message), SGL_JIT_OK);
  CU_ASSERT_EQUAL(((unsigned char *)o[3].t.data)[0], want[0]);
  CU_ASSERT_EQUAL(((unsigned char *)o[3].t.data)[1], want[1]);
  CU_ASSERT_EQUAL(((unsigned char *)o[3].t.data)[2], 3);
  ((int32_t *)o[1].t.data)[2] = 12;
  CU_ASSERT_EQUAL(pack(o, true, message), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_STRINGS(message,
               "segment_packbits: input_indptr must rise from 0 to at most the 11 elements of x, segment 1 is 9 to 12");
  ((int32_t *)o[1].t.data)[2] = 11;
  ((int32_t *)o[2].t.data)[1] = 3;
  CU_ASSERT_EQUAL(pack(o, true, message), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_STRINGS(message, "segment_packbits: y has 3 elements, segment 1 needs 1 from 3 on");
  release(o, 4);
}

static sgl_jit_status store(const struct operand o[], bool reference, char *message) {
  return reference ? sgl_jit_reference_set_kv_buffer_kernel(&o[0].t, &o[1].t, &o[2].t, &o[3].t, &o[4].t, message, 512)
                   : sgl_jit_set_kv_buffer_kernel(&o[0].t, &o[1].t, &o[2].t, &o[3].t, &o[4].t, NULL, message, 512);
}

static void store_make(struct operand o[], int64_t tokens, int64_t slots, int64_t row, bool wide, size_t shift) {
  for (int i = 0; i < 5; i++)
    make(&o[i], i == 2 ? wide ? SGL_JIT_DTYPE_INT64 : SGL_JIT_DTYPE_INT32 : SGL_JIT_DTYPE_BFLOAT16, i == 2 ? 1 : 3,
         i == 2 ? &tokens : (const int64_t[]){i < 2 ? slots : tokens, 2, row / 2}, i == 2 ? 0 : shift);
  fill(&o[3], 8, true);
  fill(&o[4], 8, true);
  for (int64_t t = 0; t < tokens; t++)
    if (wide)
      ((int64_t *)o[2].t.data)[t] = (t * 3 + 1) % slots;
    else
      ((int32_t *)o[2].t.data)[t] = (int32_t)((t * 3 + 1) % slots);
}

static void store_body(void) {
  static const int64_t shapes[][3] = {{1, 1, 8}, {5, 7, 64}, {4, 7, 12}, {40, 100, 1024}};
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (int wide = 0; wide < 2; wide++)
      for (size_t shift = 0; shift <= 8; shift += 8) {
        struct operand o[5];
        void *want[2];
        store_make(o, shapes[s][0], shapes[s][1], shapes[s][2], wide, shift);
        both(store, o, 5, 0, 2, want);
        UNIT_STRINGS(fakes.cuda->entry, shift == 0 && shapes[s][2] % 8 == 0 ? "store_16" : "store_8");
        for (int i = 0; i < 2; i++) {
          CU_ASSERT_EQUAL(memcmp(o[i].t.data, want[i], o[i].bytes), 0);
          free(want[i]);
        }
        release(o, 5);
      }
}

static void store_refuses(void) {
  static const char *const texts[] = {
      "set_kv_buffer_kernel: v_cache must be float16 like k_cache, got bfloat16",
      "set_kv_buffer_kernel: loc must be int32 or int64, got uint8",
      "set_kv_buffer_kernel: rows must be a multiple of 8 bytes, and so far apart, got 124, 124 in k and 124 in "
      "k_cache",
      "set_kv_buffer_kernel: rows of k must have as many elements as those of k_cache, 64, got 62",
      "set_kv_buffer_kernel: loc[2] must be one of the 9 slots of k_cache, got 9",
      "set_kv_buffer_kernel: each row of k must lie in one piece, got a stride of 40 in dimension 1, not 32; call "
      ".contiguous()",
      "set_kv_buffer_kernel: v must have rows as k, 5 of them 64 elements apart, got 5 of them 128 apart",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct operand o[5];
    char message[512] = "";
    store_make(o, 5, 9, i == 2 ? 62 : 64, true, 0);
    if (i == 0)
      o[0].t.dtype = SGL_JIT_DTYPE_FLOAT16;
    if (i == 1)
      o[2].t.dtype = SGL_JIT_DTYPE_UINT8;
    if (i == 3)
      o[3].sizes[2] = o[4].sizes[2] = 31, o[3].strides[1] = o[4].strides[1] = 31;
    if (i == 4)
      ((int64_t *)o[2].t.data)[2] = 9;
    if (i == 5)
      o[3].strides[1] = 40;
    if (i == 6)
      o[4].strides[0] = 128;
    CU_ASSERT_EQUAL(store(o, true, message), SGL_JIT_ERROR_INVALID_ARGUMENT);
    UNIT_STRINGS(message, texts[i]);
    release(o, 5);
  }
}

/* --- all of them --- */

/* Nothing to do, whatever the pointers. */
static void empty_body(void) {
  const struct shape none = {0, 2, 16, 3, 1, 0, 0};
  struct operand o[DOWNCAST], q[QUANT];
  char message[512];
  downcast_make(o, SGL_JIT_DTYPE_BFLOAT16, &none);
  o[K].t.data = o[V].t.data = o[LOC].t.data = NULL;
  to_cuda(o, DOWNCAST, true);
  CU_ASSERT_EQUAL(downcast(o, &none, false, message), SGL_JIT_OK);
  quant_make(q, SGL_JIT_DTYPE_BFLOAT16, 3, 0, 0);
  to_cuda(q, QUANT, true);
  *(float *)q[OUTPUT_S].t.data = 3;
  CU_ASSERT_EQUAL(quant(q, false, false, message), SGL_JIT_OK);
  CU_ASSERT_EQUAL(*(float *)q[OUTPUT_S].t.data, 3.0F);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 0);
  release(o, DOWNCAST);
  release(q, QUANT);
}

/* Every float16 and float8_e4m3fn there and back, and what lies between two of the latter. */
static void numbers(void) {
  CU_ASSERT_EQUAL(jit_to_fp16(0), 0);
  CU_ASSERT_EQUAL(jit_to_fp16(-0.0), 0x8000);
  CU_ASSERT_EQUAL(jit_to_bf16(-0.0), 0x8000);
  for (unsigned b = 0; b < 0x7c00; b++)
    CU_ASSERT_EQUAL(jit_to_fp16(jit_number(SGL_JIT_DTYPE_FLOAT16, &(uint16_t){(uint16_t)b}, 0)), b);
  for (unsigned b = 0; b < 256; b++) {
    double value = jit_from_e4m3(b), next = jit_from_e4m3(b + 1);
    CU_ASSERT_EQUAL(jit_to_e4m3(value), isnan(value) ? 0x7f : b);
    if ((b & 0x7f) >= 0x7e)
      continue;
    double middle = (value + next) / 2;
    CU_ASSERT_EQUAL(jit_to_e4m3(middle), b & 1 ? b + 1 : b); /* to even */
    CU_ASSERT_EQUAL(jit_to_e4m3(middle * (1 + 0x1p-40)), b + 1);
    CU_ASSERT_EQUAL(jit_to_e4m3(middle * (1 - 0x1p-40)), b);
  }
  CU_ASSERT_EQUAL(jit_to_e4m3(1e300), 0x7e);
  CU_ASSERT_EQUAL(jit_to_e4m3(-(double)INFINITY), 0xfe);
}

static void downcast_on_device(void) {
  start(downcast_body);
}
static void downcast_outside(void) {
  start(downcast_outside_body);
}
static void quant_on_device(void) {
  start(quant_body);
}
static void empty(void) {
  start(empty_body);
}
static void merge_on_device(void) {
  start(merge_body);
}
static void hadamard_on_device(void) {
  start(hadamard_body);
}
static void hadamard_on_small_device(void) {
  start(hadamard_small_device_body);
}
static void packbits_on_device(void) {
  start(packbits_body);
}
static void store_on_device(void) {
  start(store_body);
}

static const struct unit_test tests[] = {
    {"numbers", numbers},
    {"downcast_values", downcast_values},
    {"downcast_refuses", downcast_refuses},
    {"downcast_on_device", downcast_on_device},
    {"downcast_outside", downcast_outside},
    {"quant_values", quant_values},
    {"quant_refuses", quant_refuses},
    {"quant_on_device", quant_on_device},
    {"merge_on_device", merge_on_device},
    {"hadamard_on_device", hadamard_on_device},
    {"hadamard_on_small_device", hadamard_on_small_device},
    {"packbits_values", packbits_values},
    {"packbits_on_device", packbits_on_device},
    {"store_refuses", store_refuses},
    {"store_on_device", store_on_device},
    {"empty", empty},
};
UNIT_MAIN("jit/native", tests)
