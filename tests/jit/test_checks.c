/* Every argument check of both operators: status, and the exact message. CPU tensors and the reference backend, so that
 * what passes is also computed. */
#include "support.h"

enum argument { OUTPUT, A, W };

/* A good call of the router with 4 tokens, 16 experts and K 256, or of fused A with 4 tokens, 32 and 256; a test spoils
 * one thing. */
struct arguments {
  bool fused;
  sgl_jit_tensor t[3];
  int64_t sizes[3][2], strides[3][2];
  bool null[3];
};

static _Alignas(64) unsigned char memory[3][65536];

static struct arguments good(bool fused) {
  struct arguments g = {.fused = fused};
  const int64_t n = fused ? 32 : 16;
  const int64_t sizes[3][2] = {{4, n}, {4, 256}, {fused ? 256 : n, fused ? n : 256}};
  const int64_t strides[3][2] = {{n, 1}, {256, 1}, {fused ? 1 : 256, fused ? 256 : 1}};
  memcpy(g.sizes, sizes, sizeof sizes);
  memcpy(g.strides, strides, sizeof strides);
  for (int i = 0; i < 3; i++)
    g.t[i] = (sgl_jit_tensor){memory[i], SGL_JIT_DTYPE_BFLOAT16, SGL_JIT_DEVICE_CPU, 0, 2, NULL, NULL};
  return g;
}

static char message[512];

static sgl_jit_status call(const struct arguments *g) {
  struct arguments copy = *g;
  sgl_jit_tensor *p[3];
  for (int i = 0; i < 3; i++) {
    copy.t[i].sizes = copy.sizes[i];
    copy.t[i].strides = copy.strides[i];
    p[i] = copy.null[i] ? NULL : &copy.t[i];
  }
  sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0);
  message[0] = '\0';
  return (g->fused ? sgl_jit_dsv3_fused_a_gemm : sgl_jit_dsv3_router_gemm)(p[OUTPUT], p[A], p[W], NULL, message,
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

static void router_arguments(void) {
  struct arguments g = good(false);
  accepted(&g);
  g.null[OUTPUT] = true;
  refused(&g, "dsv3_router_gemm: output is NULL");
  g = good(false);
  g.null[A] = true;
  refused(&g, "dsv3_router_gemm: hidden_states is NULL");
  g = good(false);
  g.null[W] = true;
  refused(&g, "dsv3_router_gemm: router_weights is NULL");
  g = good(false);
  g.t[OUTPUT].ndim = 1;
  refused(&g, "dsv3_router_gemm: output must have 2 dimensions, got 1");
  g = good(false);
  g.t[A].ndim = 3;
  refused(&g, "dsv3_router_gemm: hidden_states must have 2 dimensions, got 3");
  g = good(false);
  g.t[W].ndim = 0;
  refused(&g, "dsv3_router_gemm: router_weights must have 2 dimensions, got 0");
  g = good(false);
  g.sizes[W][1] = 512;
  refused(&g, "dsv3_router_gemm: hidden_states.size(1) and router_weights.size(1) must be equal, got 256 and 512");
  g = good(false);
  g.sizes[W][1] = g.sizes[A][1] = 7000;
  refused(&g, "dsv3_router_gemm: hidden_dim (hidden_states.size(1)) must be a positive multiple of 256 up to 16777216, "
              "got 7000");
  g = good(false);
  g.sizes[W][1] = g.sizes[A][1] = 0;
  refused(
      &g,
      "dsv3_router_gemm: hidden_dim (hidden_states.size(1)) must be a positive multiple of 256 up to 16777216, got 0");
  g = good(false);
  g.sizes[W][1] = g.sizes[A][1] = 16777216 + 256;
  refused(&g, "dsv3_router_gemm: hidden_dim (hidden_states.size(1)) must be a positive multiple of 256 up to 16777216, "
              "got 16777472");
  g = good(false);
  g.sizes[W][0] = 12;
  refused(&g,
          "dsv3_router_gemm: num_experts (router_weights.size(0)) must be a positive multiple of 8 up to 1024, got 12");
  g = good(false);
  g.sizes[W][0] = 1032;
  refused(
      &g,
      "dsv3_router_gemm: num_experts (router_weights.size(0)) must be a positive multiple of 8 up to 1024, got 1032");
  g = good(false);
  g.sizes[W][0] = 0;
  refused(&g,
          "dsv3_router_gemm: num_experts (router_weights.size(0)) must be a positive multiple of 8 up to 1024, got 0");
  g = good(false);
  g.sizes[A][0] = 65;
  refused(&g, "dsv3_router_gemm: num_tokens (hidden_states.size(0)) must be 0 to 64, got 65");
  g = good(false);
  g.t[A].dtype = SGL_JIT_DTYPE_FLOAT32;
  refused(&g, "dsv3_router_gemm: hidden_states must be bfloat16, got float32");
  g = good(false);
  g.t[W].dtype = SGL_JIT_DTYPE_OTHER;
  refused(&g, "dsv3_router_gemm: router_weights must be bfloat16, got another dtype");
  g = good(false);
  g.t[OUTPUT].dtype = SGL_JIT_DTYPE_OTHER;
  refused(&g, "dsv3_router_gemm: output must be float32 or bfloat16, got another dtype");
  g.t[OUTPUT].dtype = SGL_JIT_DTYPE_FLOAT32;
  accepted(&g);
  g = good(false);
  g.sizes[OUTPUT][0] = 3;
  refused(&g, "dsv3_router_gemm: output must have the sizes (4, 16), got (3, 16)");
  g = good(false);
  g.sizes[OUTPUT][1] = 24;
  refused(&g, "dsv3_router_gemm: output must have the sizes (4, 16), got (4, 24)");
  g = good(false);
  g.strides[A][0] = 512;
  refused(&g, "dsv3_router_gemm: hidden_states must be packed row-major (strides 256, 1), got strides (512, 1); call "
              ".contiguous()");
  g = good(false);
  g.strides[OUTPUT][0] = 32;
  refused(&g,
          "dsv3_router_gemm: output must be packed row-major (strides 16, 1), got strides (32, 1); pass a contiguous "
          "tensor");
  g = good(false);
  g.strides[W][0] = 1;
  g.strides[W][1] = 16;
  refused(&g, "dsv3_router_gemm: router_weights must be packed row-major (strides 256, 1), got strides (1, 16); call "
              ".contiguous()");
}

static void fused_a_arguments(void) {
  struct arguments g = good(true);
  accepted(&g);
  g.null[W] = true;
  refused(&g, "dsv3_fused_a_gemm: mat_b is NULL");
  g = good(true);
  g.t[W].ndim = 1;
  refused(&g, "dsv3_fused_a_gemm: mat_b must have 2 dimensions, got 1");
  g = good(true);
  g.sizes[A][0] = 100;
  refused(&g, "dsv3_fused_a_gemm: num_tokens (mat_a.size(0)) must be 0 to 64, got 100");
  g = good(true);
  g.sizes[A][0] = -1;
  refused(&g, "dsv3_fused_a_gemm: num_tokens (mat_a.size(0)) must be 0 to 64, got -1");
  g = good(true);
  g.sizes[A][1] = 255;
  refused(&g, "dsv3_fused_a_gemm: hd_in (mat_a.size(1)) must be a positive multiple of 256 up to 16777216, got 255");
  g = good(true);
  g.sizes[W][0] = 512;
  refused(&g, "dsv3_fused_a_gemm: mat_a.size(1) and mat_b.size(0) must be equal, got 256 and 512");
  g = good(true);
  g.sizes[W][1] = 24;
  refused(&g, "dsv3_fused_a_gemm: hd_out (mat_b.size(1)) must be a positive multiple of 16 up to 16777216, got 24");
  g = good(true);
  g.sizes[W][1] = -16;
  refused(&g, "dsv3_fused_a_gemm: hd_out (mat_b.size(1)) must be a positive multiple of 16 up to 16777216, got -16");
  g = good(true);
  g.sizes[OUTPUT][0] = 5;
  refused(&g, "dsv3_fused_a_gemm: output must have the sizes (4, 32), got (5, 32)");
  g = good(true);
  g.strides[A][1] = 2;
  refused(&g, "dsv3_fused_a_gemm: mat_a must be packed row-major (strides 256, 1), got strides (256, 2); call "
              ".contiguous()");
  g = good(true);
  g.strides[OUTPUT][0] = 40;
  refused(&g,
          "dsv3_fused_a_gemm: output must be packed row-major (strides 32, 1), got strides (40, 1); pass a contiguous "
          "tensor");
  g = good(true);
  g.strides[W][0] = 32;
  g.strides[W][1] = 1;
  refused(&g, "dsv3_fused_a_gemm: mat_b must be packed column-major (strides 1, 256), got strides (32, 1); pass "
              "weight.t() of a contiguous [hd_out, hd_in] weight");
  g = good(true);
  g.strides[W][1] = 264;
  refused(&g, "dsv3_fused_a_gemm: mat_b must be packed column-major (strides 1, 256), got strides (1, 264); pass "
              "weight.t() of a contiguous [hd_out, hd_in] weight");
  g = good(true);
  g.t[A].dtype = SGL_JIT_DTYPE_OTHER;
  refused(&g, "dsv3_fused_a_gemm: mat_a must be bfloat16, got another dtype");
  g = good(true);
  g.t[W].dtype = SGL_JIT_DTYPE_FLOAT32;
  refused(&g, "dsv3_fused_a_gemm: mat_b must be bfloat16, got float32");
  g = good(true);
  g.t[OUTPUT].dtype = SGL_JIT_DTYPE_FLOAT32;
  refused(&g, "dsv3_fused_a_gemm: output must be bfloat16, got float32");
}

/* Device, data and overlap: the same for both operators but for the names. */
static void places(void) {
  for (int fused = 0; fused < 2; fused++) {
    const char *f = fused ? "dsv3_fused_a_gemm" : "dsv3_router_gemm", *a = fused ? "mat_a" : "hidden_states",
               *w = fused ? "mat_b" : "router_weights";
    char text[256];
    struct arguments g = good(fused);
    g.t[A].device_type = SGL_JIT_DEVICE_OTHER;
    snprintf(text, sizeof text, "%s: %s must be on a CUDA device, got another device", f, a);
    refused(&g, text);
    g = good(fused);
    g.t[W].device_type = SGL_JIT_DEVICE_CUDA;
    snprintf(text, sizeof text, "%s: %s must be on the CPU like %s, got cuda:0", f, w, a);
    refused(&g, text);
    g = good(fused);
    for (int i = 0; i < 3; i++)
      g.t[i].device_type = SGL_JIT_DEVICE_CUDA;
    g.t[OUTPUT].device_index = 3;
    snprintf(text, sizeof text, "%s: output must be on cuda:0 like %s, got cuda:3", f, a);
    refused(&g, text);
    g = good(fused);
    g.t[A].device_index = 5; /* means nothing on the CPU */
    accepted(&g);
    g = good(fused);
    g.t[W].data = NULL;
    snprintf(text, sizeof text, "%s: %s has no data (NULL)", f, w);
    refused(&g, text);
    g = good(fused);
    g.t[A].data = memory[A] + 8;
    snprintf(text, sizeof text,
             "%s: %s must start at a multiple of 16 bytes, got one that starts 8 bytes past; call .clone()", f, a);
    refused(&g, text);
    g = good(fused);
    g.t[OUTPUT].data = memory[OUTPUT] + 2;
    snprintf(text, sizeof text,
             "%s: output must start at a multiple of 16 bytes, got one that starts 2 bytes past; pass a tensor that is "
             "not such a slice",
             f);
    refused(&g, text);
    g = good(fused);
    g.t[OUTPUT].data = memory[A] + 4 * 256 * 2 - 16; /* begins inside mat_a */
    snprintf(text, sizeof text, "%s: output must not overlap %s", f, a);
    refused(&g, text);
    g.t[OUTPUT].data = memory[A] + 4 * 256 * 2; /* right behind it */
    accepted(&g);
    const int output_bytes = 4 * (fused ? 32 : 16) * 2;
    g.t[OUTPUT].data = memory[W] + 512 - output_bytes + 16; /* ends inside the weight */
    g.t[W].data = memory[W] + 512;
    snprintf(text, sizeof text, "%s: output must not overlap %s", f, w);
    refused(&g, text);
    g.t[OUTPUT].data = memory[W] + 512 - output_bytes;
    accepted(&g);
  }
}

/* The stride of a dimension of size 1, and all that is empty, does not count. */
static void strides_that_do_not_count(void) {
  for (int fused = 0; fused < 2; fused++) {
    struct arguments g = good(fused);
    g.sizes[A][0] = g.sizes[OUTPUT][0] = 1;
    g.strides[A][0] = 99999;
    g.strides[OUTPUT][0] = 1;
    accepted(&g);
    g.strides[A][1] = 2;
    CU_ASSERT_EQUAL(call(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
    g = good(fused);
    g.sizes[A][0] = g.sizes[OUTPUT][0] = 0;
    g.strides[A][0] = g.strides[A][1] = g.strides[OUTPUT][0] = 7;
    g.t[A].data = g.t[OUTPUT].data = NULL;
    memset(memory[OUTPUT], 0x5a, 64);
    accepted(&g);
    CU_ASSERT_EQUAL(memory[OUTPUT][0], 0x5a);
    g.sizes[OUTPUT][1] = 8; /* but the rest of an empty call is looked at */
    CU_ASSERT_EQUAL(call(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
    UNIT_CONTAINS(message, "output must have the sizes (0, ");
  }
}

/* With two faults, the one that the ahead-of-time kernels looked at first is named. */
static void order(void) {
  struct arguments g = good(false);
  g.sizes[A][0] = 65;
  g.t[W].dtype = SGL_JIT_DTYPE_FLOAT32;
  CU_ASSERT_EQUAL(call(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_CONTAINS(message, "num_tokens");
  g.sizes[W][0] = 12;
  CU_ASSERT_EQUAL(call(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_CONTAINS(message, "num_experts");
  g.sizes[A][1] = g.sizes[W][1] = 100;
  CU_ASSERT_EQUAL(call(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_CONTAINS(message, "hidden_dim");
  g.sizes[W][1] = 200;
  CU_ASSERT_EQUAL(call(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_CONTAINS(message, "must be equal");
  g = good(true);
  g.t[OUTPUT].dtype = SGL_JIT_DTYPE_FLOAT32;
  g.strides[W][0] = 2;
  CU_ASSERT_EQUAL(call(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_CONTAINS(message, "column-major");
  g.sizes[OUTPUT][1] = 16;
  CU_ASSERT_EQUAL(call(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_CONTAINS(message, "output must have the sizes");
  g.sizes[W][1] = 8;
  CU_ASSERT_EQUAL(call(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_CONTAINS(message, "hd_out");
  g.sizes[A][1] = 8;
  CU_ASSERT_EQUAL(call(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_CONTAINS(message, "hd_in");
  g.sizes[A][0] = 65;
  CU_ASSERT_EQUAL(call(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_CONTAINS(message, "num_tokens");
}

static void message_buffers(void) {
  char small[16];
  memset(small, 'x', sizeof small);
  CU_ASSERT_EQUAL(sgl_jit_dsv3_router_gemm(NULL, NULL, NULL, NULL, NULL, 0), SGL_JIT_ERROR_INVALID_ARGUMENT);
  CU_ASSERT_EQUAL(sgl_jit_dsv3_router_gemm(NULL, NULL, NULL, NULL, small, 0), SGL_JIT_ERROR_INVALID_ARGUMENT);
  CU_ASSERT_EQUAL(small[0], 'x');
  CU_ASSERT_EQUAL(sgl_jit_dsv3_router_gemm(NULL, NULL, NULL, NULL, small, 12), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_STRINGS(small, "dsv3_router");
  CU_ASSERT_EQUAL(small[12], 'x');
  sgl_jit_tensor t = {memory[0], SGL_JIT_DTYPE_BFLOAT16, SGL_JIT_DEVICE_CPU, 0, 2, NULL, NULL};
  CU_ASSERT_EQUAL(sgl_jit_dsv3_router_gemm(&t, &t, &t, NULL, message, sizeof message), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_STRINGS(message, "dsv3_router_gemm: output has no sizes or no strides (NULL)");
}

static const struct unit_test tests[] = {
    {"router_arguments", router_arguments},
    {"fused_a_arguments", fused_a_arguments},
    {"places", places},
    {"strides_that_do_not_count", strides_that_do_not_count},
    {"order", order},
    {"message_buffers", message_buffers},
};
UNIT_MAIN("jit/checks", tests)
