/* bmm_fp8: its argument checks, the reference backend, and the calls of cuBLASLt, on a stand-in for it that checks what
 * it is asked. Descriptors also on the real cuBLASLt, where one is. */
#include "cases.h"
#include "jit/internal.h"
#include "tests/small_floats.h"
#include <errno.h>
#include <limits.h>
#include <pthread.h>

#define E4M3 SGL_JIT_DTYPE_FLOAT8_E4M3FN
#define E5M2 SGL_JIT_DTYPE_FLOAT8_E5M2
#define BF16 SGL_JIT_DTYPE_BFLOAT16
#define FP16 SGL_JIT_DTYPE_FLOAT16

/* --- a call with its tensors --- */

enum { A_SCALE_AT = 4 };

struct bmm {
  int batch, m, n, k;
  sgl_jit_dtype a_type, b_type, output_type;
  bool cuda;
  int device;
  struct guarded output, a, b, scales; /* B_scale, and 16 bytes further A_scale */
  void *workspace, *stream;
  size_t workspace_size;
  char message[512];
};

static struct small_float format_of(sgl_jit_dtype type) {
  return type == E4M3 ? small_e4m3 : type == E5M2 ? small_e5m2 : type == FP16 ? small_fp16 : small_bf16;
}

static void fill_fp8(uint8_t *p, size_t count, sgl_jit_dtype type, uint64_t seed) {
  for (size_t i = 0; i < count; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    p[i] = (uint8_t)(seed >> 33);
    if (!(fabs(small_value(format_of(type), p[i])) <= 448)) /* infinity, NaN, and what would drown all the rest */
      p[i] &= 0x3f;
  }
}

static size_t count_of(int a, int b, int c) {
  return (size_t)a * (size_t)b * (size_t)c;
}

static struct bmm make(int batch, int m, int n, int k, sgl_jit_dtype a_type, sgl_jit_dtype b_type, sgl_jit_dtype output,
                       bool cuda) {
  struct bmm p = {
      .batch = batch, .m = m, .n = n, .k = k, .a_type = a_type, .b_type = b_type, .output_type = output, .cuda = cuda};
  p.output = guarded_alloc(count_of(batch, m, n) * 2, true);
  p.a = guarded_alloc(count_of(batch, m, k), true);
  p.b = guarded_alloc(count_of(batch, n, k), true);
  p.scales = guarded_alloc(2 * A_SCALE_AT * sizeof(float), true);
  fill_fp8(p.a.data, count_of(batch, m, k), a_type, 1);
  fill_fp8(p.b.data, count_of(batch, n, k), b_type, 2);
  ((float *)p.scales.data)[0] = 0.0123f;
  ((float *)p.scales.data)[A_SCALE_AT] = 0.37f;
  return p;
}

static struct bmm small(bool cuda) {
  return make(2, 3, 8, 32, E4M3, E4M3, BF16, cuda);
}

static void drop(struct bmm *p) {
  guarded_free(p->output);
  guarded_free(p->a);
  guarded_free(p->b);
  guarded_free(p->scales);
}

static sgl_jit_status run(struct bmm *p) {
  const int64_t batch = p->batch, m = p->m, n = p->n, k = p->k;
  const int64_t sizes[3][3] = {{batch, m, n}, {batch, m, k}, {batch, k, n}};
  const int64_t strides[3][3] = {{m * n, n, 1}, {m * k, k, 1}, {k * n, 1, k}};
  const int64_t one = 1;
  const sgl_jit_device_type place = p->cuda ? SGL_JIT_DEVICE_CUDA : SGL_JIT_DEVICE_CPU;
  float *scales = p->scales.data;
  const sgl_jit_tensor t[5] = {
      {p->output.data, p->output_type, place, p->device, 3, sizes[0], strides[0]},
      {p->a.data, p->a_type, place, p->device, 3, sizes[1], strides[1]},
      {p->b.data, p->b_type, place, p->device, 3, sizes[2], strides[2]},
      {&scales[A_SCALE_AT], SGL_JIT_DTYPE_FLOAT32, place, p->device, 1, &one, &one}, /* both forms of one element */
      {&scales[0], SGL_JIT_DTYPE_FLOAT32, place, p->device, 0, NULL, NULL},
  };
  p->message[0] = '\0';
  return sgl_jit_bmm_fp8(&t[0], &t[1], &t[2], &t[3], &t[4], p->workspace, p->workspace_size, p->stream, p->message,
                         sizeof p->message);
}

/* Outputs further from the exact product than half a last place and `slack` of the sum's largest terms allow. */
static int wrong(const struct bmm *p, double slack) {
  const uint8_t *a = p->a.data, *b = p->b.data;
  const float *scales = p->scales.data;
  const uint16_t *output = p->output.data;
  int count = 0;
  for (int batch = 0; batch < p->batch; batch++)
    for (int m = 0; m < p->m; m++)
      for (int n = 0; n < p->n; n++) {
        long double sum = 0, terms = 0, scale = (long double)scales[0] * (long double)scales[A_SCALE_AT];
        for (int k = 0; k < p->k; k++) {
          long double term =
              (long double)small_value(format_of(p->a_type), a[count_of(batch * p->m + m, p->k, 1) + k]) *
              (long double)small_value(format_of(p->b_type), b[count_of(batch * p->n + n, p->k, 1) + k]);
          sum += term;
          terms += fabsl(term);
        }
        uint16_t bits = output[count_of(batch * p->m + m, p->n, 1) + (size_t)n];
        double have = small_value(format_of(p->output_type), bits), want = (double)(sum * scale);
        double place = p->output_type == FP16 ? fmax(fabs(want) / (1 << 11), 0x1p-25) : fabs(want) / (1 << 8);
        if (isinf(small_value(format_of(p->output_type), small_nearest(format_of(p->output_type), want))))
          count += have != copysign((double)INFINITY, want);
        else
          count += !(fabs(have - want) <= place + slack * (double)(terms * scale));
      }
  return count;
}

#define REFUSED(p, status_wanted, text)                                                                                \
  do {                                                                                                                 \
    CU_ASSERT_EQUAL(run(&(p)), status_wanted);                                                                         \
    UNIT_STRINGS((p).message, text);                                                                                   \
  } while (0)
#define COMPUTES(p)                                                                                                    \
  do {                                                                                                                 \
    memset((p).output.data, 0xff, count_of((p).batch, (p).m, (p).n) * 2);                                              \
    REFUSED(p, SGL_JIT_OK, "");                                                                                        \
    CU_ASSERT_EQUAL(wrong(&(p), 1e-6), 0);                                                                             \
  } while (0)

/* --- the reference backend --- */

static const struct shape {
  int batch, m, n, k;
} shapes[] = {{1, 1, 8, 16}, {3, 5, 24, 48}, {2, 17, 64, 256}, {4, 1, 16, 128}, {1, 33, 8, 64}};
static const sgl_jit_dtype types[][3] = {{E4M3, E4M3, BF16}, {E4M3, E4M3, FP16}, {E4M3, E5M2, BF16},
                                         {E5M2, E4M3, BF16}, {E5M2, E4M3, FP16}, {E4M3, E5M2, FP16}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], TYPES = sizeof types / sizeof types[0] };

static void all_shapes(bool cuda) {
  for (int s = 0; s < SHAPES; s++)
    for (int t = 0; t < TYPES; t++) {
      struct bmm p =
          make(shapes[s].batch, shapes[s].m, shapes[s].n, shapes[s].k, types[t][0], types[t][1], types[t][2], cuda);
      COMPUTES(p);
      drop(&p);
    }
}

static void reference(void) {
  sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0);
  all_shapes(false);
}

/* One product of numbers: k is 16, and all but the first are zero. */
static double one_product(sgl_jit_dtype a_type, unsigned a, float a_scale, float b_scale, sgl_jit_dtype output) {
  struct bmm p = make(1, 1, 8, 16, a_type, E4M3, output, false);
  memset(p.a.data, 0, 16);
  memset(p.b.data, 0, 128);
  ((uint8_t *)p.a.data)[0] = (uint8_t)a;
  ((uint8_t *)p.b.data)[0] = 0x38; /* 1 */
  ((float *)p.scales.data)[0] = b_scale;
  ((float *)p.scales.data)[A_SCALE_AT] = a_scale;
  REFUSED(p, SGL_JIT_OK, "");
  double value = small_value(format_of(output), *(uint16_t *)p.output.data);
  drop(&p);
  return value;
}

static void decoding(void) {
  static const struct {
    sgl_jit_dtype type;
    unsigned bits;
    double value;
  } known[] = {{E4M3, 0x01, 0x1p-9},  {E4M3, 0x07, 0x7p-9},   {E4M3, 0x08, 0x1p-6},   {E4M3, 0x38, 1},
               {E4M3, 0x7e, 448},     {E4M3, 0xfe, -448},     {E4M3, 0xc5, -3.25},    {E5M2, 0x01, 0x1p-16},
               {E5M2, 0x03, 0x3p-16}, {E5M2, 0x04, 0x1p-14},  {E5M2, 0x3c, 1},        {E5M2, 0x7b, 57344},
               {E5M2, 0xfb, -57344},  {E5M2, 0x7c, INFINITY}, {E5M2, 0xfc, -INFINITY}};
  sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0);
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    CU_ASSERT_EQUAL(one_product(known[i].type, known[i].bits, 1, 1, BF16), known[i].value);
  for (unsigned bits = 0; bits < 256; bits++)
    for (int t = 0; t < 2; t++) {
      double have = one_product(t ? E5M2 : E4M3, bits, 1, 1, BF16);
      double want = small_value(t ? small_e5m2 : small_e4m3, bits);
      CU_ASSERT(isnan(want) ? isnan(have) : have == want);
    }
  CU_ASSERT(isnan(one_product(E4M3, 0x7f, 1, 1, FP16)) && isnan(one_product(E4M3, 0xff, 1, 1, FP16)));
  CU_ASSERT(isnan(one_product(E5M2, 0x7d, 1, 1, FP16)) && isnan(one_product(E5M2, 0xff, 1, 1, FP16)));
}

/* The product of the scales itself, rounded to float16. */
static double rounded(float a_scale, float b_scale) {
  double have = one_product(E4M3, 0x38, a_scale, b_scale, FP16), product = (double)a_scale * (double)b_scale;
  double want = small_value(small_fp16, small_nearest(small_fp16, product));
  CU_ASSERT(isnan(want) ? isnan(have) : have == want);
  return have;
}

static void rounding(void) {
  const float hair = 1 + 0x1p-23f;
  sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0);
  CU_ASSERT_EQUAL(rounded(1 + 0x1p-11f, 1), 1);                      /* a tie, to even: down */
  CU_ASSERT_EQUAL(rounded(1 + 0x3p-11f, 1), 1 + 0x1p-9);             /* to even: up */
  CU_ASSERT_EQUAL(rounded(1 + 0x1p-11f, hair), 1 + 0x1p-10);         /* a hair more */
  CU_ASSERT_EQUAL(rounded(1 + 0x3p-11f, 1 - 0x1p-24f), 1 + 0x1p-10); /* a hair less */
  CU_ASSERT_EQUAL(rounded(2047.5f, 1), 2048);                        /* a carry into the exponent */
  CU_ASSERT_EQUAL(rounded(0x1p-24f, 1), 0x1p-24);                    /* the smallest */
  CU_ASSERT_EQUAL(rounded(0x1p-25f, 1), 0);                          /* a tie with zero */
  CU_ASSERT_EQUAL(rounded(0x1p-25f, hair), 0x1p-24);
  CU_ASSERT_EQUAL(rounded(0x1.8p-24f, 1), 0x1p-23);
  CU_ASSERT_EQUAL(rounded(1023.5f, 0x1p-24f), 0x1p-14); /* the largest subnormal's upper tie */
  CU_ASSERT_EQUAL(rounded(65504, 1), 65504);
  CU_ASSERT_EQUAL(rounded(-65519.99f, 1), -65504);
  CU_ASSERT_EQUAL(rounded(65520, 1), INFINITY);
  CU_ASSERT_EQUAL(rounded(-65520, 1), -INFINITY);
  CU_ASSERT_EQUAL(rounded(0x1p120f, 0x1p120f), INFINITY);
  CU_ASSERT_EQUAL(rounded(0x1p-120f, 0x1p-120f), 0);
  CU_ASSERT(isnan(rounded(NAN, 1)));
  uint64_t seed = 7;
  for (int i = 0; i < 5000; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    rounded(ldexpf((float)(int32_t)(seed >> 32), (int)(seed >> 20 & 63) - 63), 1 + (float)(seed & 0xffff) * 0x1p-20f);
  }
}

/* --- argument checks --- */

enum argument { OUTPUT, A, B, A_SCALE, B_SCALE, TENSORS };

/* Batch 2, m 4, n 24, k 32; a test spoils one thing. */
struct arguments {
  sgl_jit_tensor t[TENSORS];
  int64_t sizes[TENSORS][4], strides[TENSORS][4];
  bool null[TENSORS];
  void *workspace;
  size_t workspace_size;
};

static _Alignas(256) unsigned char memory[TENSORS + 1][4096];

static struct arguments good(void) {
  struct arguments g = {.workspace = NULL};
  const int64_t sizes[3][3] = {{2, 4, 24}, {2, 4, 32}, {2, 32, 24}};
  const int64_t strides[3][3] = {{96, 24, 1}, {128, 32, 1}, {768, 1, 32}};
  const sgl_jit_dtype dtypes[TENSORS] = {BF16, E4M3, E5M2, SGL_JIT_DTYPE_FLOAT32, SGL_JIT_DTYPE_FLOAT32};
  for (int i = 0; i < TENSORS; i++) {
    if (i <= B) {
      memcpy(g.sizes[i], sizes[i], sizeof sizes[i]);
      memcpy(g.strides[i], strides[i], sizeof strides[i]);
    } else {
      g.sizes[i][0] = g.sizes[i][1] = 1;
    }
    g.t[i] = (sgl_jit_tensor){memory[i], dtypes[i], SGL_JIT_DEVICE_CPU, 0, i <= B ? 3 : 2, NULL, NULL};
  }
  return g;
}

static char message[512];

static sgl_jit_status call(const struct arguments *g) {
  struct arguments copy = *g;
  sgl_jit_tensor *p[TENSORS];
  for (int i = 0; i < TENSORS; i++) {
    copy.t[i].sizes = copy.sizes[i];
    copy.t[i].strides = copy.strides[i];
    p[i] = copy.null[i] ? NULL : &copy.t[i];
  }
  message[0] = '\0';
  return sgl_jit_bmm_fp8(p[OUTPUT], p[A], p[B], p[A_SCALE], p[B_SCALE], g->workspace, g->workspace_size, NULL, message,
                         sizeof message);
}

static void refused(const struct arguments *g, const char *text) {
  CU_ASSERT_EQUAL(call(g), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_STRINGS(message, text);
}

static void accepted(const struct arguments *g) {
  CU_ASSERT_EQUAL(call(g), SGL_JIT_OK);
  UNIT_STRINGS(message, "");
}

/* `spoil` is a statement on `g`. */
#define SPOILED(spoil, text)                                                                                           \
  do {                                                                                                                 \
    struct arguments g = good();                                                                                       \
    spoil;                                                                                                             \
    refused(&g, "bmm_fp8: " text);                                                                                     \
  } while (0)
#define FINE(change)                                                                                                   \
  do {                                                                                                                 \
    struct arguments g = good();                                                                                       \
    change;                                                                                                            \
    accepted(&g);                                                                                                      \
  } while (0)

static void arguments_refused(void) {
  sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0);
  FINE((void)g);
  SPOILED(g.null[OUTPUT] = true, "output is NULL");
  SPOILED(g.null[A] = true, "A is NULL");
  SPOILED(g.null[B] = true, "B is NULL");
  SPOILED(g.null[A_SCALE] = true, "A_scale is NULL");
  SPOILED(g.null[B_SCALE] = true, "B_scale is NULL");
  SPOILED(g.t[A].ndim = 2, "A must have 3 dimensions, got 2");
  SPOILED(g.t[B].ndim = 4, "B must have 3 dimensions, got 4");
  SPOILED(g.t[OUTPUT].ndim = 0, "output must have 3 dimensions, got 0");
  SPOILED(g.sizes[A_SCALE][1] = 2, "A_scale must have one element (a scale for the whole tensor), got size(1) 2");
  SPOILED(g.sizes[B_SCALE][0] = 0, "B_scale must have one element (a scale for the whole tensor), got size(0) 0");
  SPOILED(g.t[A].dtype = BF16, "A must be float8_e4m3fn or float8_e5m2, got bfloat16");
  SPOILED(g.t[B].dtype = SGL_JIT_DTYPE_OTHER, "B must be float8_e4m3fn or float8_e5m2, got another dtype");
  SPOILED(g.t[B].dtype = (sgl_jit_dtype)99, "B must be float8_e4m3fn or float8_e5m2, got another dtype");
  SPOILED(g.t[A].dtype = E5M2,
          "A and B must not both be float8_e5m2, cuBLASLt has no such product; make one of them float8_e4m3fn");
  SPOILED(g.t[OUTPUT].dtype = SGL_JIT_DTYPE_FLOAT32, "output must be bfloat16 or float16, got float32");
  SPOILED(g.t[OUTPUT].dtype = E4M3, "output must be bfloat16 or float16, got float8_e4m3fn");
  SPOILED(g.t[A_SCALE].dtype = BF16, "A_scale must be float32, got bfloat16");
  SPOILED(g.t[B_SCALE].dtype = FP16, "B_scale must be float32, got float16");
  SPOILED(g.sizes[B][0] = 3, "A.size(0) and B.size(0) must be equal, got 2 and 3");
  SPOILED(g.sizes[B][1] = 48, "A.size(2) and B.size(1) must be equal, got 32 and 48");
  SPOILED(g.sizes[A][1] = -1, "A.size(0) and A.size(1) must be 0 to 2147483647, got 2 and -1");
  SPOILED(g.sizes[A][0] = g.sizes[B][0] = INT64_C(1) << 31,
          "A.size(0) and A.size(1) must be 0 to 2147483647, got 2147483648 and 4");
  SPOILED(g.sizes[A][2] = g.sizes[B][1] = 40,
          "k (A.size(2)) must be a positive multiple of 16 up to 2147483647, got 40");
  SPOILED(g.sizes[A][2] = g.sizes[B][1] = 0, "k (A.size(2)) must be a positive multiple of 16 up to 2147483647, got 0");
  SPOILED(g.sizes[A][2] = g.sizes[B][1] = -16,
          "k (A.size(2)) must be a positive multiple of 16 up to 2147483647, got -16");
  SPOILED(g.sizes[B][2] = 12, "n (B.size(2)) must be a positive multiple of 8 up to 2147483647, got 12");
  SPOILED(g.sizes[B][2] = 0, "n (B.size(2)) must be a positive multiple of 8 up to 2147483647, got 0");
  SPOILED(g.sizes[B][2] = INT64_C(8) << 30,
          "n (B.size(2)) must be a positive multiple of 8 up to 2147483647, got 8589934592");
  SPOILED(g.sizes[OUTPUT][1] = 5, "output must have the sizes (2, 4, 24), got (2, 5, 24)");
  SPOILED(g.sizes[OUTPUT][0] = 1, "output must have the sizes (2, 4, 24), got (1, 4, 24)");
  SPOILED(g.strides[A][1] = 64,
          "A must be packed, row-major (strides 128, 32, 1), got strides (128, 64, 1); call .contiguous()");
  SPOILED((g.strides[A][1] = 1, g.strides[A][2] = 4),
          "A must be packed, row-major (strides 128, 32, 1), got strides (128, 1, 4); call .contiguous()");
  SPOILED((g.strides[B][1] = 24, g.strides[B][2] = 1),
          "B must be packed, column-major in each batch (strides 768, 1, 32), got strides (768, 24, 1); pass "
          "weight.transpose(1, 2) of a contiguous [batch, n, k] weight");
  SPOILED(g.strides[B][0] = 0,
          "B must be packed, column-major in each batch (strides 768, 1, 32), got strides (0, 1, 32); pass "
          "weight.transpose(1, 2) of a contiguous [batch, n, k] weight");
  SPOILED(g.strides[OUTPUT][0] = 24, "output must be packed, row-major (strides 96, 24, 1), got strides (24, 24, 1); "
                                     "pass a contiguous tensor");
  SPOILED(g.t[A].device_type = SGL_JIT_DEVICE_OTHER, "A must be on a CUDA device, got another device");
  SPOILED(g.t[B].device_type = SGL_JIT_DEVICE_CUDA, "B must be on the CPU like A, got cuda:0");
  SPOILED(g.t[OUTPUT].device_type = SGL_JIT_DEVICE_OTHER, "output must be on the CPU like A, got another device");
  SPOILED(
      {
        for (int i = 0; i < TENSORS; i++)
          g.t[i].device_type = SGL_JIT_DEVICE_CUDA;
        g.t[B_SCALE].device_index = 1;
      },
      "B_scale must be on cuda:0 like A, got cuda:1");
  SPOILED(g.t[A].data = NULL, "A has no data (NULL)");
  SPOILED(g.t[A_SCALE].data = NULL, "A_scale has no data (NULL)");
  SPOILED(g.t[A].data = memory[A] + 8, "A must start at a multiple of 16 bytes, got one that starts 8 bytes past; call "
                                       ".clone()");
  SPOILED(g.t[OUTPUT].data = memory[OUTPUT] + 2, "output must start at a multiple of 16 bytes, got one that starts 2 "
                                                 "bytes past; pass a tensor that is not such a slice");
  SPOILED(g.t[B_SCALE].data = memory[B_SCALE] + 2, "B_scale must start at a multiple of 4 bytes, got one that starts 2 "
                                                   "bytes past; call .clone()");
  SPOILED(g.t[OUTPUT].data = memory[A] + 240, "output must not overlap A");
  SPOILED(g.t[OUTPUT].data = memory[B] + 1520, "output must not overlap B");
  SPOILED(g.t[A_SCALE].data = memory[OUTPUT] + 380, "output must not overlap A_scale");
  SPOILED(
      {
        for (int i = OUTPUT; i <= B; i++) {
          g.sizes[i][0] = g.sizes[i][i == B ? 2 : 1] = INT_MAX - 7;
          g.sizes[i][2] = i == OUTPUT ? INT_MAX - 7 : g.sizes[i][2];
        }
        g.strides[OUTPUT][0] = (int64_t)(INT_MAX - 7) * (INT_MAX - 7);
        g.strides[OUTPUT][1] = INT_MAX - 7;
        g.strides[A][0] = g.strides[B][0] = (int64_t)(INT_MAX - 7) * 32;
      },
      "output is larger than any memory");
  errno = 77;
  refused(&(struct arguments){.null = {true, true, true, true, true}}, "bmm_fp8: output is NULL");
  CU_ASSERT_EQUAL(errno, 77);
  CU_ASSERT_EQUAL(sgl_jit_bmm_fp8(NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0),
                  SGL_JIT_ERROR_INVALID_ARGUMENT);
}

static void arguments_accepted(void) {
  sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0);
  FINE(g.t[A_SCALE].data = memory[A_SCALE] + 4);
  FINE(g.t[OUTPUT].data = memory[A] + 256); /* beside it */
  FINE((g.sizes[OUTPUT][0] = g.sizes[A][0] = g.sizes[B][0] = 1, g.strides[A][0] = g.strides[B][0] = -5));
  FINE((g.sizes[OUTPUT][1] = g.sizes[A][1] = 1, g.strides[OUTPUT][0] = 24, g.strides[A][0] = 32, g.strides[A][1] = 7));
  FINE((g.sizes[OUTPUT][1] = g.sizes[A][1] = 0, g.t[A].data = g.t[OUTPUT].data = NULL));
  FINE((g.sizes[OUTPUT][0] = g.sizes[A][0] = g.sizes[B][0] = 0, g.strides[A][0] = 3,
        g.t[A].data = g.t[B].data = g.t[OUTPUT].data = NULL));
  FINE((g.workspace = (void *)1, g.workspace_size = 5)); /* not read on the CPU */
  FINE(g.t[B].dtype = E4M3);
}

static void on_cuda(struct arguments *g) {
  for (int i = 0; i < TENSORS; i++)
    g->t[i].device_type = SGL_JIT_DEVICE_CUDA;
  g->workspace = memory[TENSORS];
  g->workspace_size = 512;
}

static void workspace_refused(void) {
  SPOILED((on_cuda(&g), g.workspace = NULL), "workspace is NULL, but workspace_size is 512");
  SPOILED(
      (on_cuda(&g), g.workspace = memory[TENSORS] + 16),
      "workspace must start at a multiple of 256 bytes, got one that starts 16 bytes past; pass a tensor that is not "
      "a slice");
  SPOILED((on_cuda(&g), g.workspace = memory[A]), "workspace must not overlap A");
  SPOILED((on_cuda(&g), g.workspace = memory[OUTPUT]), "workspace must not overlap output");
  SPOILED((on_cuda(&g), g.t[B_SCALE].data = memory[TENSORS] + 8), "workspace must not overlap B_scale");
}

static void backends(void) {
  struct bmm p = small(false);
  sgl_jit_set_backend(SGL_JIT_BACKEND_AUTO, NULL, 0);
  REFUSED(p, SGL_JIT_ERROR_UNSUPPORTED,
          "bmm_fp8: the tensors must be on a CUDA device, got CPU tensors (for tests, SGL_KERNEL_JIT_BACKEND=reference "
          "computes them)");
  sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0);
  p.cuda = true;
  REFUSED(p, SGL_JIT_ERROR_UNSUPPORTED,
          "bmm_fp8: the reference backend computes CPU tensors only, got tensors on cuda:0");
  drop(&p);
}

/* --- on the stand-ins --- */

static struct fake_cublaslt *blas;

static void use_blas(void) {
  struct path path = path_in(own_folder(), "fake_cublaslt.so");
  void *library = dlopen(path.text, RTLD_NOW);
  if (!library) {
    fprintf(stderr, "  %s\n", dlerror());
    abort();
  }
  unsetenv("SGL_KERNEL_JIT_CUBLASLT");
  sgl_jit_set_backend(SGL_JIT_BACKEND_AUTO, NULL, 0); /* the parent has chosen the reference */
  blas = dlsym(library, "fake_cublaslt");
}

#define BLAS_CASE(name)                                                                                                \
  static void name##_with_blas(void);                                                                                  \
  CASE(name) {                                                                                                         \
    use_blas();                                                                                                        \
    name##_with_blas();                                                                                                \
  }                                                                                                                    \
  static void name##_with_blas(void)

BLAS_CASE(products) {
  all_shapes(true);
  CU_ASSERT_EQUAL(blas->created, 1);
  CU_ASSERT_EQUAL(blas->chosen, SHAPES * TYPES);
  all_shapes(true);
  CU_ASSERT_EQUAL(blas->created, 1);
  CU_ASSERT_EQUAL(blas->chosen, SHAPES * TYPES);
  CU_ASSERT_EQUAL(blas->multiplied, 2 * SHAPES * TYPES);
  UNIT_STRINGS(blas->fault, "");
}

BLAS_CASE(what_is_asked) {
  static _Alignas(256) unsigned char workspace[1024];
  struct bmm p = small(true);
  p.stream = (void *)0x1234;
  COMPUTES(p);
  CU_ASSERT_EQUAL(blas->stream, p.stream);
  CU_ASSERT_EQUAL(blas->device, 0);
  CU_ASSERT_EQUAL(blas->workspace_size, 0);
  p.workspace = workspace;
  p.workspace_size = sizeof workspace;
  blas->needs_workspace = 300;
  COMPUTES(p);
  CU_ASSERT_EQUAL(blas->workspace_size, sizeof workspace);
  CU_ASSERT_EQUAL(workspace[299], 0xee);
  CU_ASSERT_EQUAL(workspace[300], 0);
  CU_ASSERT_EQUAL(blas->chosen, 2); /* the size of the workspace is part of the choice */
  p.device = 1;
  COMPUTES(p);
  CU_ASSERT_EQUAL(blas->device, 1);
  CU_ASSERT_EQUAL(blas->created, 2);
  CU_ASSERT_EQUAL(blas->chosen, 3);
  CU_ASSERT_EQUAL(fakes.count("cuCtxPushCurrent"), fakes.count("cuCtxPopCurrent"));
  p.device = 0;
  fakes.context(0, 1);
  int pushed = fakes.count("cuCtxPushCurrent");
  COMPUTES(p);
  CU_ASSERT_EQUAL(fakes.count("cuCtxPushCurrent"), pushed); /* a current context is kept */
  CU_ASSERT_EQUAL(blas->created, 2);
  drop(&p);
}

/* An algorithm for better aligned data is not taken for other data. */
BLAS_CASE(alignment) {
  static _Alignas(256) unsigned char a[2 * 3 * 32 + 256], b[2 * 8 * 32], output[2 * 3 * 8 * 2];
  static _Alignas(16) float scales[A_SCALE_AT + 1] = {1, 0, 0, 0, 1};
  struct bmm p = {.batch = 2,
                  .m = 3,
                  .n = 8,
                  .k = 32,
                  .a_type = E4M3,
                  .b_type = E4M3,
                  .output_type = BF16,
                  .cuda = true,
                  .output = {.data = output},
                  .a = {.data = a},
                  .b = {.data = b},
                  .scales = {.data = scales}};
  COMPUTES(p);
  CU_ASSERT_EQUAL(blas->alignment, 256);
  for (int past = 16; past < 256; past *= 2) {
    p.a.data = a + past;
    fill_fp8(p.a.data, 192, E4M3, 3);
    fill_fp8(b, sizeof b, E4M3, 4);
    COMPUTES(p);
    CU_ASSERT_EQUAL(blas->alignment, past);
  }
  p.a.data = a + 48;
  COMPUTES(p);
  CU_ASSERT_EQUAL(blas->chosen, 5);
  p.a.data = a;
  COMPUTES(p);
  CU_ASSERT_EQUAL(blas->alignment, 256);
  CU_ASSERT_EQUAL(blas->chosen, 5);
}

/* Slices of one buffer, at every place that a float can have. cuBLASLt gets them at multiples of 16 bytes, and the rest
 * of the workspace. */
BLAS_CASE(scales_anywhere) {
  static _Alignas(256) unsigned char workspace[1024];
  struct bmm p = small(true);
  struct guarded scales = p.scales;
  static _Alignas(16) float buffer[16];
  p.workspace = workspace;
  p.workspace_size = sizeof workspace;
  p.stream = (void *)0x1234;
  blas->needs_workspace = sizeof workspace - 256;
  for (int past = 1; past < 4; past++) { /* both scales */
    p.scales.data = &buffer[past];
    buffer[past] = 0.5f;
    buffer[past + A_SCALE_AT] = 3;
    int copies = fakes.count("cuMemcpyDtoDAsync");
    COMPUTES(p);
    CU_ASSERT_EQUAL(fakes.count("cuMemcpyDtoDAsync"), copies + 2);
    CU_ASSERT_EQUAL(blas->chosen, 2);              /* once to be refused, once for the rest of the workspace */
    CU_ASSERT_EQUAL(fakes.cuda->stream, p.stream); /* the order of the stream, not of this thread */
    CU_ASSERT_EQUAL(blas->workspace_size, sizeof workspace - 256);
    CU_ASSERT_EQUAL(workspace[256], 0xee);
  }
  p.scales = scales;
  p.workspace_size = 256; /* none is left for cuBLASLt */
  blas->needs_workspace = 0;
  p.scales.data = &buffer[1];
  COMPUTES(p);
  CU_ASSERT_EQUAL(blas->workspace_size, 0);
  p.workspace_size = 255;
  REFUSED(p, SGL_JIT_ERROR_UNSUPPORTED,
          "bmm_fp8: A_scale starts 4 bytes past a multiple of 16 bytes, where this cuBLASLt does not take it, and the "
          "workspace is too small for a copy; call .clone(), or pass a workspace of 256 bytes or more");
  p.workspace_size = 256;
  fakes.cuda->copy_error = 700;
  CU_ASSERT_EQUAL(run(&p), SGL_JIT_ERROR_LAUNCH);
  UNIT_CONTAINS(p.message, "bmm_fp8: the driver refused to copy a scale, or an earlier error surfaced: ");
  fakes.cuda->copy_error = 0;
  p.scales = scales; /* well placed ones are not copied */
  p.workspace_size = 0;
  p.workspace = NULL;
  int copies = fakes.count("cuMemcpyDtoDAsync");
  COMPUTES(p);
  CU_ASSERT_EQUAL(fakes.count("cuMemcpyDtoDAsync"), copies);
  p.scales.data = &buffer[2]; /* up to 12.8 they are taken where they are; what was seen before stays */
  blas->takes_odd_scales = 1;
  p.m = 2;
  COMPUTES(p);
  COMPUTES(p);
  CU_ASSERT_EQUAL(fakes.count("cuMemcpyDtoDAsync"), copies);
  CU_ASSERT_EQUAL(fakes.count("cuCtxPushCurrent"), fakes.count("cuCtxPopCurrent"));
  p.scales = scales;
  drop(&p);
}

BLAS_CASE(nothing_to_do) {
  struct bmm p = make(2, 0, 8, 32, E4M3, E4M3, BF16, true);
  REFUSED(p, SGL_JIT_OK, "");
  p.batch = 0;
  REFUSED(p, SGL_JIT_OK, "");
  CU_ASSERT_EQUAL(fakes.count(""), 0);
  CU_ASSERT_EQUAL(blas->created, 0);
  drop(&p);
}

BLAS_CASE(devices) {
  struct bmm p = small(true);
  fakes.cuda->major = 8;
  fakes.cuda->minor = 6;
  REFUSED(p, SGL_JIT_ERROR_UNSUPPORTED, "bmm_fp8: cuda:0 has compute capability 8.6, FP8 products need 8.9 or newer");
  CU_ASSERT_EQUAL(fakes.count("cuCtxPushCurrent"), fakes.count("cuCtxPopCurrent"));
  CU_ASSERT_EQUAL(blas->created, 0);
  p.device = 2;
  REFUSED(p, SGL_JIT_ERROR_INVALID_ARGUMENT, "bmm_fp8: there is no cuda:2, the driver has 2 devices");
  drop(&p);
}

BLAS_CASE(first_fp8_device) {
  struct bmm p = small(true);
  fakes.cuda->major = 8;
  fakes.cuda->minor = 9;
  COMPUTES(p);
  drop(&p);
}

/* --- errors: nothing is left behind, so that the same call works afterwards --- */

static void fails_once(_Atomic int *error, int with, sgl_jit_status status, const char *text) {
  struct bmm p = small(true);
  p.k = 16;
  *error = with;
  REFUSED(p, status, text);
  *error = 0;
  CU_ASSERT_EQUAL(fakes.count("cuCtxPushCurrent"), fakes.count("cuCtxPopCurrent"));
  drop(&p);
}

#define PRODUCT                                                                                                        \
  "batch 2, m 3, n 8, k 16, float8_e4m3fn x float8_e4m3fn to bfloat16, 0 bytes of workspace, on cuda:0 "               \
  "(compute capability 9.0); the deleted kernel had 32 MiB of workspace"

BLAS_CASE(errors) {
  char text[4600];
  snprintf(text, sizeof text,
           "bmm_fp8: cuBLASLt 13.1.0 (%s) does not start on cuda:0 (CUBLAS_STATUS_NOT_INITIALIZED); the driver is for "
           "CUDA 13.0, another cuBLASLt can be named in SGL_KERNEL_JIT_CUBLASLT",
           path_in(own_folder(), "fake_cublaslt.so").text);
  text[511] = '\0'; /* as the message's buffer */
  fails_once(&blas->create_error, 1, SGL_JIT_ERROR_NO_CUBLASLT, text);
  struct bmm p = small(true);
  blas->create_error = 3;
  CU_ASSERT_EQUAL(run(&p), SGL_JIT_ERROR_OUT_OF_MEMORY);
  blas->create_error = 0;
  fails_once(&blas->heuristic_error, 15, SGL_JIT_ERROR_UNSUPPORTED,
             "bmm_fp8: cuBLASLt 13.1.0 has no algorithm (CUBLAS_STATUS_NOT_SUPPORTED) for " PRODUCT);
  fails_once(&blas->heuristic_error, 3, SGL_JIT_ERROR_OUT_OF_MEMORY,
             "bmm_fp8: cuBLASLt 13.1.0 refused the product, or an earlier error surfaced: CUBLAS_STATUS_ALLOC_FAILED");
  fails_once(&blas->state, 15, SGL_JIT_ERROR_UNSUPPORTED,
             "bmm_fp8: cuBLASLt 13.1.0 has no algorithm (CUBLAS_STATUS_NOT_SUPPORTED) for " PRODUCT);
  fails_once(&blas->matmul_error, 13, SGL_JIT_ERROR_LAUNCH,
             "bmm_fp8: cuBLASLt 13.1.0 refused the product, or an earlier error surfaced: CUBLAS_STATUS_SOMETHING");
  fails_once(&blas->matmul_error, 15, SGL_JIT_ERROR_UNSUPPORTED,
             "bmm_fp8: cuBLASLt 13.1.0 has chosen an algorithm and refuses it "
             "(CUBLAS_STATUS_NOT_SUPPORTED) for " PRODUCT);
  blas->needs_workspace = 1;
  fails_once(&blas->matmul_error, 0, SGL_JIT_ERROR_UNSUPPORTED,
             "bmm_fp8: cuBLASLt 13.1.0 has no algorithm (CUBLAS_STATUS_NOT_SUPPORTED) for " PRODUCT);
  blas->needs_workspace = 0;
  CU_ASSERT_EQUAL(blas->created, 1);
  COMPUTES(p);
  blas->matmul_error = 13; /* of a shape that has worked */
  errno = 77;
  REFUSED(p, SGL_JIT_ERROR_LAUNCH,
          "bmm_fp8: cuBLASLt 13.1.0 refused the product, or an earlier error surfaced: CUBLAS_STATUS_SOMETHING");
  CU_ASSERT_EQUAL(errno, 77);
  blas->matmul_error = 0;
  COMPUTES(p);
  CU_ASSERT_EQUAL(fakes.count("cuCtxPushCurrent"), fakes.count("cuCtxPopCurrent"));
  CU_ASSERT_EQUAL(fakes.count("cuThreadExchangeStreamCaptureMode") % 2, 0);
  CU_ASSERT_EQUAL(blas->created, 1);
  UNIT_STRINGS(blas->fault, "");
  drop(&p);
}

/* --- stream capture --- */

static int capture_mode(void) {
  int (*exchange)(int *);
  int mode = 0;
  *(void **)&exchange = dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuThreadExchangeStreamCaptureMode");
  exchange(&mode);
  int was = mode;
  exchange(&mode);
  return was;
}

BLAS_CASE(capture) {
  struct bmm p = small(true);
  fakes.cuda->capturing = 1;
  blas->needs_relaxed = 1;
  COMPUTES(p);
  CU_ASSERT_EQUAL(capture_mode(), 0);
  COMPUTES(p);
  struct bmm other = make(1, 3, 8, 32, E4M3, E4M3, FP16, true);
  blas->needs_relaxed = 2;
  REFUSED(other, SGL_JIT_ERROR_CAPTURE,
          "bmm_fp8: the first use of this shape came during a stream capture, where cuBLASLt 13.1.0 could not load its "
          "code (CUBLAS_STATUS_INTERNAL_ERROR); call it once with this shape before the capture");
  CU_ASSERT_EQUAL(capture_mode(), 0);
  fakes.cuda->capturing = 0;
  CU_ASSERT_EQUAL(run(&other), SGL_JIT_ERROR_LAUNCH);
  COMPUTES(p); /* one that is loaded needs nothing */
  blas->needs_relaxed = 0;
  COMPUTES(other);
  /* What a capture is not the reason of keeps its own status. */
  fakes.cuda->capturing = 1;
  blas->heuristic_error = 15;
  other.m = 2;
  CU_ASSERT_EQUAL(run(&other), SGL_JIT_ERROR_UNSUPPORTED);
  drop(&p);
  drop(&other);
}

BLAS_CASE(capture_before_the_handle) {
  struct bmm p = small(true);
  fakes.cuda->capturing = 1;
  blas->needs_relaxed = 2;
  REFUSED(p, SGL_JIT_ERROR_CAPTURE,
          "bmm_fp8: the first use of this shape came during a stream capture, where cuBLASLt 13.1.0 could not start "
          "(CUBLAS_STATUS_INTERNAL_ERROR); call it once with this shape before the capture");
  fakes.cuda->capturing = 0;
  blas->needs_relaxed = 1;
  COMPUTES(p);
  CU_ASSERT_EQUAL(blas->created, 1);
  drop(&p);
}

/* --- finding cuBLASLt --- */

CASE(no_library) {
  struct bmm p = small(true);
  sgl_jit_set_backend(SGL_JIT_BACKEND_AUTO, NULL, 0);
  setenv("SGL_KERNEL_JIT_CUBLASLT", "/nowhere/libcublasLt.so.13", 1);
  CU_ASSERT_EQUAL(run(&p), SGL_JIT_ERROR_NO_CUBLASLT);
  UNIT_CONTAINS(p.message, "bmm_fp8: SGL_KERNEL_JIT_CUBLASLT names no usable library: /nowhere/libcublasLt.so.13: ");
  setenv("SGL_KERNEL_JIT_CUBLASLT", path_in(own_folder(), "fake_nvrtc.so").text, 1);
  REFUSED(p, SGL_JIT_ERROR_NO_CUBLASLT,
          "bmm_fp8: cuBLASLt has no function cublasLtGetVersion: it is too old, 12.0 is needed");
  CU_ASSERT_EQUAL(fakes.count("cuCtxPushCurrent"), fakes.count("cuCtxPopCurrent"));
  setenv("SGL_KERNEL_JIT_CUBLASLT", path_in(own_folder(), "fake_cublaslt.so").text, 1);
  COMPUTES(p); /* the next call looks again */
  drop(&p);
}

BLAS_CASE(old_library) {
  struct bmm p = small(true);
  blas->version = 110803;
  CU_ASSERT_EQUAL(run(&p), SGL_JIT_ERROR_NO_CUBLASLT);
  UNIT_CONTAINS(p.message, "bmm_fp8: cuBLASLt 11.8.3 (");
  UNIT_CONTAINS(p.message, "fake_cublaslt.so) is too old, 12.0 is needed");
  blas->version = 120103;
  COMPUTES(p);
  drop(&p);
}

/* --- many --- */

BLAS_CASE(more_shapes_than_are_remembered) {
  enum { REMEMBERED = 4096 };
  struct bmm p = small(true);
  struct guarded output = p.output, a = p.a;
  p.batch = 1;
  p.output = guarded_alloc((REMEMBERED + 2) * 16, true); /* of the largest call */
  p.a = guarded_alloc((REMEMBERED + 2) * 16, true);
  p.k = 16;
  blas->idle = 1;
  for (p.m = 1; p.m <= REMEMBERED + 2; p.m++)
    CU_ASSERT_EQUAL(run(&p), SGL_JIT_OK);
  CU_ASSERT_EQUAL(blas->chosen, REMEMBERED + 2);
  p.m = 1;
  CU_ASSERT_EQUAL(run(&p), SGL_JIT_OK);
  p.m = REMEMBERED;
  CU_ASSERT_EQUAL(run(&p), SGL_JIT_OK);
  CU_ASSERT_EQUAL(blas->chosen, REMEMBERED + 2);
  p.m = REMEMBERED + 1;
  CU_ASSERT_EQUAL(run(&p), SGL_JIT_OK);
  CU_ASSERT_EQUAL(blas->chosen, REMEMBERED + 3);
  guarded_free(output);
  guarded_free(a);
  drop(&p);
}

enum { THREADS = 8, ROUNDS = 20 };

static void *use_from_thread(void *bad) {
  for (int i = 0; i < ROUNDS; i++) {
    struct bmm p = make(2, 1 + i % 5, 8, 32, E4M3, E4M3, BF16, true);
    p.device = i % 2;
    if (run(&p) != SGL_JIT_OK || wrong(&p, 1e-6))
      *(atomic_int *)bad += 1;
    drop(&p);
  }
  return NULL;
}

BLAS_CASE(threads) {
  pthread_t all[THREADS];
  atomic_int bad = 0;
  for (int i = 0; i < THREADS; i++)
    CU_ASSERT_EQUAL(pthread_create(&all[i], NULL, use_from_thread, &bad), 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(all[i], NULL);
  CU_ASSERT_EQUAL(bad, 0);
  CU_ASSERT_EQUAL(blas->created, 2);
  CU_ASSERT(blas->chosen >= 10 && blas->chosen <= 10 * THREADS);
  CU_ASSERT_EQUAL(blas->multiplied, THREADS * ROUNDS);
}

static int run_in_child(void *p) {
  return run(p) == SGL_JIT_ERROR_NO_DRIVER && strstr(((struct bmm *)p)->message, "forked") ? 0 : 1;
}

BLAS_CASE(fork_after_use) {
  struct bmm p = small(true);
  COMPUTES(p);
  CU_ASSERT_EQUAL(end_process(start_process(run_in_child, &p)), 0);
  COMPUTES(p);
  drop(&p);
}

/* --- the real library, which makes descriptors without a GPU --- */

static char found[4096];

static void keep_found(void *user, const char *place, const char *path, const char *problem) {
  (void)user, (void)place;
  if (path && !problem)
    snprintf(found, sizeof found, "%s", path);
}

static void real_descriptors(void) {
  struct jit_message m = {message, sizeof message, NULL};
  const struct jit_blas *real;
  unsetenv("SGL_KERNEL_JIT_CUBLASLT");
  if (jit_blas_search(0, keep_found, NULL, m) != SGL_JIT_OK) {
    UNIT_SKIP("no cuBLASLt here");
    return;
  }
  CU_ASSERT_EQUAL(jit_blas(0, &real, m), SGL_JIT_OK);
  struct jit_blas_facts facts;
  jit_blas_facts(real, &facts);
  printf("cuBLASLt %s, %s\n", facts.version, facts.path);
  UNIT_STRINGS(jit_blas_error(real, JIT_BLAS_NOT_INITIALIZED), "CUBLAS_STATUS_NOT_INITIALIZED");
  UNIT_STRINGS(jit_blas_error(real, JIT_BLAS_ALLOC_FAILED), "CUBLAS_STATUS_ALLOC_FAILED");
  UNIT_STRINGS(jit_blas_error(real, JIT_BLAS_INVALID_VALUE), "CUBLAS_STATUS_INVALID_VALUE");
  UNIT_STRINGS(jit_blas_error(real, JIT_BLAS_ARCH_MISMATCH), "CUBLAS_STATUS_ARCH_MISMATCH");
  UNIT_STRINGS(jit_blas_error(real, JIT_BLAS_EXECUTION_FAILED), "CUBLAS_STATUS_EXECUTION_FAILED");
  UNIT_STRINGS(jit_blas_error(real, JIT_BLAS_INTERNAL_ERROR), "CUBLAS_STATUS_INTERNAL_ERROR");
  UNIT_STRINGS(jit_blas_error(real, JIT_BLAS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
  /* The library knows the size of each attribute, and refuses another one: the numbers are the right ones. */
  struct {
    struct jit_blas_desc desc;
    struct jit_blas_layout layout;
    struct jit_blas_preference preference;
    uint64_t after;
  } all = {.after = 0x5a5a5a5a5a5a5a5a};
  int8_t fast = 1;
  int32_t number = 1;
  int64_t large = 4096;
  const void *scale = &large;
  CU_ASSERT_EQUAL(real->cublasLtMatmulDescInit_internal(&all.desc, sizeof all.desc, 68, 0), 0);
  CU_ASSERT_EQUAL(real->cublasLtMatmulDescSetAttribute(&all.desc, 3, &number, 4), 0);
  CU_ASSERT_EQUAL(real->cublasLtMatmulDescSetAttribute(&all.desc, 25, &fast, 1), 0);
  CU_ASSERT_EQUAL(real->cublasLtMatmulDescSetAttribute(&all.desc, 25, &number, 4), JIT_BLAS_INVALID_VALUE);
  CU_ASSERT_EQUAL(real->cublasLtMatmulDescSetAttribute(&all.desc, 17, &scale, 8), 0);
  CU_ASSERT_EQUAL(real->cublasLtMatmulDescSetAttribute(&all.desc, 18, &scale, 8), 0);
  CU_ASSERT_EQUAL(real->cublasLtMatmulDescSetAttribute(&all.desc, 18, &number, 4), JIT_BLAS_INVALID_VALUE);
  CU_ASSERT_EQUAL(real->cublasLtMatrixLayoutInit_internal(&all.layout, sizeof all.layout, 28, 64, 16, 64), 0);
  CU_ASSERT_EQUAL(real->cublasLtMatrixLayoutSetAttribute(&all.layout, 5, &number, 4), 0);
  CU_ASSERT_EQUAL(real->cublasLtMatrixLayoutSetAttribute(&all.layout, 6, &large, 8), 0);
  CU_ASSERT_EQUAL(real->cublasLtMatrixLayoutSetAttribute(&all.layout, 6, &number, 4), JIT_BLAS_INVALID_VALUE);
  CU_ASSERT_EQUAL(real->cublasLtMatmulPreferenceInit_internal(&all.preference, sizeof all.preference), 0);
  CU_ASSERT_EQUAL(real->cublasLtMatmulPreferenceSetAttribute(&all.preference, 1, &large, 8), 0);
  CU_ASSERT_EQUAL(real->cublasLtMatmulPreferenceSetAttribute(&all.preference, 1, &number, 4), JIT_BLAS_INVALID_VALUE);
  for (int i = 5; i <= 8; i++)
    CU_ASSERT_EQUAL(real->cublasLtMatmulPreferenceSetAttribute(&all.preference, i, &number, 4), 0);
  CU_ASSERT_EQUAL(all.after, 0x5a5a5a5a5a5a5a5a);
}

static const struct unit_test tests[] = {
    {"reference", reference},
    {"decoding", decoding},
    {"rounding", rounding},
    {"arguments_refused", arguments_refused},
    {"arguments_accepted", arguments_accepted},
    {"workspace_refused", workspace_refused},
    {"backends", backends},
    {"products", products},
    {"what_is_asked", what_is_asked},
    {"alignment", alignment},
    {"scales_anywhere", scales_anywhere},
    {"nothing_to_do", nothing_to_do},
    {"devices", devices},
    {"first_fp8_device", first_fp8_device},
    {"errors", errors},
    {"capture", capture},
    {"capture_before_the_handle", capture_before_the_handle},
    {"no_library", no_library},
    {"old_library", old_library},
    {"more_shapes_than_are_remembered", more_shapes_than_are_remembered},
    {"threads", threads},
    {"fork_after_use", fork_after_use},
    {"real_descriptors", real_descriptors},
};
UNIT_MAIN("jit/bmm_fp8", tests)
