/* Copies between a tensor and host memory, with the fake driver, and the reference by its own name. */
#include "support.h"

enum { M = 3, N = 8, K = 256 };

static struct fakes fakes;
static char message[512];

static bool prepare(void) {
  if (!fakes.cuda)
    fakes = use_fakes("fake_cuda.so");
  message[0] = '\0';
  return fakes.cuda != NULL;
}

static sgl_jit_tensor matrix(void *data, sgl_jit_device_type device, const int64_t sizes[2], const int64_t strides[2]) {
  return (sgl_jit_tensor){data, SGL_JIT_DTYPE_BFLOAT16, device, 0, 2, sizes, strides};
}

static void round_trip(void) {
  if (!prepare())
    return;
  const int64_t sizes[2] = {M, N}, row_major[2] = {N, 1}, column_major[2] = {1, M};
  uint16_t there[M * N], here[M * N];
  static const sgl_jit_device_type devices[] = {SGL_JIT_DEVICE_CPU, SGL_JIT_DEVICE_CUDA};
  for (int device = 0; device < 2; device++)
    for (int transposed = 0; transposed < 2; transposed++) {
      sgl_jit_tensor t = matrix(there, devices[device], sizes, transposed ? column_major : row_major);
      void *stream = device ? (void *)&fakes : NULL;
      fill_random(there, M * N, 7);
      memset(here, 0, sizeof here);
      CU_ASSERT_EQUAL(sgl_jit_read(&t, here, sizeof here, stream, message, sizeof message), SGL_JIT_OK);
      CU_ASSERT_EQUAL(memcmp(here, there, sizeof here), 0);
      fill_random(here, M * N, 8);
      CU_ASSERT_EQUAL(sgl_jit_write(&t, here, sizeof here, stream, message, sizeof message), SGL_JIT_OK);
      CU_ASSERT_EQUAL(memcmp(here, there, sizeof here), 0);
      UNIT_STRINGS(message, "");
    }
  CU_ASSERT_EQUAL(fakes.count("cuMemcpyDtoHAsync"), 2);
  CU_ASSERT_EQUAL(fakes.count("cuMemcpyHtoDAsync"), 2);
  CU_ASSERT_EQUAL(fakes.count("cuStreamSynchronize"), 4);
}

static void refused(const sgl_jit_tensor *t, void *data, size_t size, const char *part) {
  message[0] = '\0';
  CU_ASSERT_EQUAL(sgl_jit_read(t, data, size, NULL, message, sizeof message), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_CONTAINS(message, part);
  CU_ASSERT_EQUAL(sgl_jit_write(t, data, size, NULL, NULL, 0), SGL_JIT_ERROR_INVALID_ARGUMENT);
}

static void bad_arguments(void) {
  const int64_t sizes[2] = {M, N}, packed[2] = {N, 1}, gaps[2] = {2 * N, 1}, expanded[2] = {0, 1};
  const int64_t huge[2] = {INT64_MAX / 2, 4}, negative[2] = {-1, N}, empty[2] = {0, N};
  uint16_t there[M * N] = {0}, here[M * N];
  sgl_jit_tensor t = matrix(there, SGL_JIT_DEVICE_CPU, sizes, packed);
  refused(NULL, here, sizeof here, "tensor is NULL");
  refused(&t, NULL, sizeof here, "data is NULL");
  refused(&t, here, sizeof here - 1, "has 48 bytes, not 47");
  t.strides = gaps;
  refused(&t, here, sizeof here, "do not lie in one piece");
  t.strides = expanded;
  refused(&t, here, sizeof here, "do not lie in one piece");
  t.strides = packed;
  t.sizes = huge;
  refused(&t, here, sizeof here, "no memory has that");
  t.sizes = negative;
  refused(&t, here, sizeof here, "size 0 is -1");
  t.sizes = NULL;
  refused(&t, here, sizeof here, "no sizes");
  t.sizes = sizes;
  t.dtype = SGL_JIT_DTYPE_OTHER;
  refused(&t, here, sizeof here, "another dtype");
  t.dtype = SGL_JIT_DTYPE_BFLOAT16;
  t.device_type = SGL_JIT_DEVICE_OTHER;
  refused(&t, here, sizeof here, "CPU or on a CUDA device");
  t.data = NULL;
  refused(&t, here, sizeof here, "no data");
  t.sizes = empty;
  CU_ASSERT_EQUAL(sgl_jit_read(&t, NULL, 0, NULL, message, sizeof message), SGL_JIT_OK);
  t.device_type = SGL_JIT_DEVICE_CUDA;
  t.sizes = sizes;
  t.data = there;
  t.device_index = 99;
  refused(&t, here, sizeof here, "no cuda:99");
}

/* A stream that is being captured is left alone; an error of the driver is told. */
static void capture(void) {
  if (!prepare())
    return;
  const int64_t sizes[2] = {M, N}, strides[2] = {N, 1};
  uint16_t there[M * N] = {0}, here[M * N];
  sgl_jit_tensor t = matrix(there, SGL_JIT_DEVICE_CUDA, sizes, strides);
  int copies = fakes.count("cuMemcpyDtoHAsync"), waits = fakes.count("cuStreamSynchronize");
  fakes.cuda->capturing = 1;
  CU_ASSERT_EQUAL(sgl_jit_read(&t, here, sizeof here, NULL, message, sizeof message), SGL_JIT_ERROR_CAPTURE);
  UNIT_CONTAINS(message, "being captured");
  CU_ASSERT_EQUAL(sgl_jit_write(&t, here, sizeof here, NULL, message, sizeof message), SGL_JIT_ERROR_CAPTURE);
  CU_ASSERT_EQUAL(fakes.count("cuMemcpyDtoHAsync"), copies);
  CU_ASSERT_EQUAL(fakes.count("cuStreamSynchronize"), waits);
  fakes.cuda->capturing = 0;
  atomic_store(&fakes.cuda->copy_error, 700);
  CU_ASSERT_EQUAL(sgl_jit_read(&t, here, sizeof here, NULL, message, sizeof message), SGL_JIT_ERROR_LAUNCH);
  UNIT_CONTAINS(message, "the driver refused the copy");
  atomic_store(&fakes.cuda->copy_error, 0);
}

/* Whatever the backend is, CPU tensors are computed, as the operators compute them with the reference backend. */
static void reference(void) {
  for (int fused = 0; fused < 2; fused++) {
    struct gemm g = {.fused = fused, .f32 = !fused, .tokens = M, .n = 16, .k = K};
    gemm_make(&g, true);
    const int64_t sizes[3][2] = {{M, g.n}, {M, K}, {fused ? K : g.n, fused ? g.n : K}};
    const int64_t strides[3][2] = {{g.n, 1}, {K, 1}, {fused ? 1 : K, fused ? K : 1}};
    sgl_jit_tensor t[3] = {matrix(g.output.data, SGL_JIT_DEVICE_CPU, sizes[0], strides[0]),
                           matrix(g.a.data, SGL_JIT_DEVICE_CPU, sizes[1], strides[1]),
                           matrix(g.w.data, SGL_JIT_DEVICE_CPU, sizes[2], strides[2])};
    if (!fused)
      t[0].dtype = SGL_JIT_DTYPE_FLOAT32;
    sgl_jit_status (*run)(const sgl_jit_tensor *, const sgl_jit_tensor *, const sgl_jit_tensor *, char *, size_t) =
        fused ? sgl_jit_reference_dsv3_fused_a_gemm : sgl_jit_reference_dsv3_router_gemm;
    CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_UNSUPPORTED); /* the backend is not the reference */
    CU_ASSERT_EQUAL(run(&t[0], &t[1], &t[2], message, sizeof message), SGL_JIT_OK);
    CU_ASSERT_EQUAL(gemm_wrong(&g, 0), 0);
    t[0].dtype = SGL_JIT_DTYPE_FLOAT16;
    CU_ASSERT_EQUAL(run(&t[0], &t[1], &t[2], message, sizeof message), SGL_JIT_ERROR_INVALID_ARGUMENT);
    t[0].dtype = fused ? SGL_JIT_DTYPE_BFLOAT16 : SGL_JIT_DTYPE_FLOAT32;
    for (int i = 0; i < 3; i++)
      t[i].device_type = SGL_JIT_DEVICE_CUDA;
    CU_ASSERT_EQUAL(run(&t[0], &t[1], &t[2], message, sizeof message), SGL_JIT_ERROR_UNSUPPORTED);
    UNIT_CONTAINS(message, "computes CPU tensors only");
    gemm_free(&g);
  }
}

static void reference_bmm(void) {
  const int64_t a_sizes[3] = {1, 1, 16}, a_strides[3] = {16, 16, 1}, b_sizes[3] = {1, 16, 8},
                b_strides[3] = {128, 1, 16};
  const int64_t sizes[3] = {1, 1, 8}, strides[3] = {8, 8, 1};
  static _Alignas(16) uint8_t a[16], b[128];
  static _Alignas(16) uint16_t output[8];
  static _Alignas(16) float scales[2] = {2, 0.5f};
  memset(a, 0x38, sizeof a); /* 1 in e4m3 */
  memset(b, 0x40, sizeof b); /* 2 */
  const int64_t one = 1;
  sgl_jit_tensor t[5] = {{output, SGL_JIT_DTYPE_BFLOAT16, SGL_JIT_DEVICE_CPU, 0, 3, sizes, strides},
                         {a, SGL_JIT_DTYPE_FLOAT8_E4M3FN, SGL_JIT_DEVICE_CPU, 0, 3, a_sizes, a_strides},
                         {b, SGL_JIT_DTYPE_FLOAT8_E4M3FN, SGL_JIT_DEVICE_CPU, 0, 3, b_sizes, b_strides},
                         {&scales[0], SGL_JIT_DTYPE_FLOAT32, SGL_JIT_DEVICE_CPU, 0, 1, &one, &one},
                         {&scales[1], SGL_JIT_DTYPE_FLOAT32, SGL_JIT_DEVICE_CPU, 0, 1, &one, &one}};
  CU_ASSERT_EQUAL(sgl_jit_reference_bmm_fp8(&t[0], &t[1], &t[2], &t[3], &t[4], message, sizeof message), SGL_JIT_OK);
  for (int i = 0; i < 8; i++)
    CU_ASSERT_EQUAL(bf16_value(output[i]), 32.0f);
  for (int i = 0; i < 5; i++)
    t[i].device_type = SGL_JIT_DEVICE_CUDA;
  CU_ASSERT_EQUAL(sgl_jit_reference_bmm_fp8(&t[0], &t[1], &t[2], &t[3], &t[4], message, sizeof message),
                  SGL_JIT_ERROR_UNSUPPORTED);
}

static const struct unit_test tests[] = {
    {"round_trip", round_trip}, {"bad_arguments", bad_arguments}, {"capture", capture},
    {"reference", reference},   {"reference_bmm", reference_bmm},
};
UNIT_MAIN("jit/host", tests)
