/* What the shim's tests share. The shim finds torch once in the life of a process, so each test runs in a child of its
 * own: world_child(f) forks, runs f and fails the test when an EXPECT in it failed or the child died. */
#ifndef SGL_TESTS_WORLD_H
#define SGL_TESTS_WORLD_H

#include "shim/include/sgl_kernel_compat.h"
#include "tests/shim/fake_torch.h"
#include "tests/unit.h"

#include <dlfcn.h>
#include <sgl_kernel_jit/sgl_kernel_jit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
/* Asked for by the sanitizer, which else ends a child that makes a thread, and has every process wait a second. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
  return "die_after_fork=0:atexit_sleep_ms=0";
}
#endif

static int world_failures;

#define EXPECT(condition)                                                                                              \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      world_failures++;                                                                                                \
      fprintf(stderr, "  %s:%d: %s\n", __FILE__, __LINE__, #condition);                                                \
    }                                                                                                                  \
  } while (0)
#define EXPECT_CONTAINS(text, part)                                                                                    \
  do {                                                                                                                 \
    if (!strstr((text), (part))) {                                                                                     \
      world_failures++;                                                                                                \
      fprintf(stderr, "  %s:%d: \"%s\" does not contain \"%s\"\n", __FILE__, __LINE__, (text), (part));                \
    }                                                                                                                  \
  } while (0)

__attribute__((unused)) static void world_child(void (*f)(void)) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    f();
    fflush(NULL);
    _exit(world_failures ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CU_ASSERT_EQUAL(status, 0);
}

/* The folder of the test programs, where the stand-ins lie too. */
__attribute__((unused)) static const char *world_folder(void) {
  static char folder[4096];
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  folder[length > 0 ? length : 0] = '\0';
  *strrchr(folder, '/') = '\0';
  return folder;
}

/* Load a stand-in under another file name, as the loader of Python would: in no global scope unless mode says so. */
__attribute__((unused)) static void *world_load(const char *fake, const char *name, int mode) {
  char folder[] = "/tmp/sgl-world-XXXXXX", target[4200], link[4200];
  snprintf(target, sizeof target, "%s/%s.so", world_folder(), fake);
  snprintf(link, sizeof link, "%s/%s", mkdtemp(folder), name);
  void *handle = symlink(target, link) == 0 ? dlopen(link, RTLD_NOW | mode) : NULL;
  if (!handle) {
    world_failures++;
    fprintf(stderr, "  cannot load %s: %s\n", link, dlerror());
  }
  unlink(link);
  rmdir(folder);
  return handle;
}

__attribute__((unused)) static struct fake_state *world_torch(const char *fake) {
  void *handle = world_load(fake, "libtorch_cpu.so", RTLD_LOCAL);
  fake_state_function *state = handle ? (fake_state_function *)dlsym(handle, "fake_torch_state") : NULL;
  return state ? state() : NULL;
}

/* Run f(argument) under a C++ try. Returns whether a std::exception came; its text is in world_what, its mangled type
 * in world_type. */
static char world_type[2048], world_what[2048];
__attribute__((unused)) static bool world_throws(void (*f)(void *), void *argument) {
  static int (*catch_call)(void (*)(void *), void *, char *, char *, size_t);
  if (!catch_call) {
    char path[4200];
    snprintf(path, sizeof path, "%s/fake_catch.so", world_folder());
    void *handle = dlopen(path, RTLD_NOW);
    catch_call = handle ? (int (*)(void (*)(void *), void *, char *, char *, size_t))dlsym(handle, "catch_call") : NULL;
  }
  return catch_call && catch_call(f, argument, world_type, world_what, sizeof world_what) == 1;
}

/* The operands of a small router call and of a small fused A call: a [2, 256], b [16, 256]; every product is
 * 2 * 3 * 256. */
enum { WORLD_M = 2, WORLD_N = 16, WORLD_K = 256 };
struct world_operands {
  _Alignas(16) float output[WORLD_M * WORLD_N];
  _Alignas(16) uint16_t output_bfloat16[WORLD_M * WORLD_N];
  _Alignas(16) uint16_t a[WORLD_M * WORLD_K];
  _Alignas(16) uint16_t b[WORLD_N * WORLD_K];
  struct fake_tensor tensor[3]; /* output, mat_a, mat_b */
};

__attribute__((unused)) static void world_router(struct world_operands *operands) {
  memset(operands, 0, sizeof *operands);
  for (int i = 0; i < WORLD_M * WORLD_K; i++)
    operands->a[i] = 0x4000; /* 2.0 */
  for (int i = 0; i < WORLD_N * WORLD_K; i++)
    operands->b[i] = 0x4040; /* 3.0 */
  operands->tensor[0] =
      (struct fake_tensor){operands->output, 2, {WORLD_M, WORLD_N}, {WORLD_N, 1}, FAKE_FLOAT32, FAKE_CPU, -1, 0, 0};
  operands->tensor[1] =
      (struct fake_tensor){operands->a, 2, {WORLD_M, WORLD_K}, {WORLD_K, 1}, FAKE_BFLOAT16, FAKE_CPU, -1, 0, 0};
  operands->tensor[2] =
      (struct fake_tensor){operands->b, 2, {WORLD_N, WORLD_K}, {WORLD_K, 1}, FAKE_BFLOAT16, FAKE_CPU, -1, 0, 0};
}

__attribute__((unused)) static void world_fused_a(struct world_operands *operands) {
  world_router(operands);
  operands->tensor[0].data = operands->output_bfloat16;
  operands->tensor[0].dtype = FAKE_BFLOAT16;
  operands->tensor[2] =
      (struct fake_tensor){operands->b, 2, {WORLD_K, WORLD_N}, {1, WORLD_K}, FAKE_BFLOAT16, FAKE_CPU, -1, 0, 0};
}

__attribute__((unused)) static bool world_router_done(const struct world_operands *operands) {
  for (int i = 0; i < WORLD_M * WORLD_N; i++)
    if (operands->output[i] != 2.0f * 3.0f * WORLD_K)
      return false;
  return true;
}

__attribute__((unused)) static bool world_fused_a_done(const struct world_operands *operands) {
  for (int i = 0; i < WORLD_M * WORLD_N; i++)
    if (operands->output_bfloat16[i] != 0x44c0) /* 1536.0 */
      return false;
  return true;
}

/* The operands of a small bmm_fp8: A [2, 4, 32] and B [2, 32, 8], every product 2 * 3 * 32, scaled to 24. */
enum { WORLD_BATCH = 2, WORLD_BMM_M = 4, WORLD_BMM_N = 8, WORLD_BMM_K = 32 };
struct world_bmm {
  _Alignas(16) uint16_t output[WORLD_BATCH * WORLD_BMM_M * WORLD_BMM_N];
  _Alignas(16) uint8_t a[WORLD_BATCH * WORLD_BMM_M * WORLD_BMM_K];
  _Alignas(16) uint8_t b[WORLD_BATCH * WORLD_BMM_N * WORLD_BMM_K];
  _Alignas(16) float a_scale;
  _Alignas(16) float b_scale;
  _Alignas(256) char workspace[1024];
  struct fake_tensor tensor[6]; /* A, B, D, A_scale, B_scale, workspace_buffer */
};

__attribute__((unused)) static void world_bmm(struct world_bmm *bmm) {
  enum { M = WORLD_BMM_M, N = WORLD_BMM_N, K = WORLD_BMM_K };
  memset(bmm, 0, sizeof *bmm);
  memset(bmm->a, 0x40, sizeof bmm->a); /* 2.0 in E4M3 */
  memset(bmm->b, 0x42, sizeof bmm->b); /* 3.0 in E5M2 */
  bmm->a_scale = 0.5f;
  bmm->b_scale = 0.25f;
  bmm->tensor[0] = (struct fake_tensor){bmm->a, 3, {WORLD_BATCH, M, K}, {M * K, K, 1}, FAKE_E4M3, FAKE_CPU, -1, 0, 0};
  bmm->tensor[1] = (struct fake_tensor){bmm->b, 3, {WORLD_BATCH, K, N}, {K * N, 1, K}, FAKE_E5M2, FAKE_CPU, -1, 0, 0};
  bmm->tensor[2] =
      (struct fake_tensor){bmm->output, 3, {WORLD_BATCH, M, N}, {M * N, N, 1}, FAKE_BFLOAT16, FAKE_CPU, -1, 0, 0};
  bmm->tensor[3] = (struct fake_tensor){&bmm->a_scale, 1, {1}, {1}, FAKE_FLOAT32, FAKE_CPU, -1, 0, 0};
  bmm->tensor[4] = (struct fake_tensor){&bmm->b_scale, 0, {0}, {0}, FAKE_FLOAT32, FAKE_CPU, -1, 0, 0};
  bmm->tensor[5] = (struct fake_tensor){bmm->workspace, 2, {4, 256}, {256, 1}, FAKE_BYTE, FAKE_CPU, -1, 0, 0};
}

/* value: 24 as bfloat16 or float16 has it. */
__attribute__((unused)) static bool world_bmm_done(const struct world_bmm *bmm, uint16_t value) {
  for (int i = 0; i < WORLD_BATCH * WORLD_BMM_M * WORLD_BMM_N; i++)
    if (bmm->output[i] != value)
      return false;
  return true;
}
enum { WORLD_24_BFLOAT16 = 0x41c0, WORLD_24_FLOAT16 = 0x4e00 };

/* The deleted C++ functions, as the linker sees them. */
typedef void world_three_tensors(void *output, const void *mat_a, const void *mat_b);
extern world_three_tensors world_cxx_router __asm__("_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_");
extern world_three_tensors world_cxx_fused_a __asm__("_Z17dsv3_fused_a_gemmRN2at6TensorERKS0_S3_");
extern void world_cxx_bmm(void *a, void *b, void *d, void *a_scale, void *b_scale, void *workspace_buffer,
                          int64_t cublas_handle) __asm__("_Z7bmm_fp8N2at6TensorES0_S0_S0_S0_S0_l");

/* What goes to stderr while f(argument) runs, cut to the size of the buffer; it stays valid until the next call. */
__attribute__((unused)) static const char *world_stderr(void (*f)(void *), void *argument) {
  static char text[8192];
  FILE *file = tmpfile();
  int saved = dup(2);
  dup2(fileno(file), 2);
  f(argument);
  dup2(saved, 2);
  close(saved);
  rewind(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  return text;
}

__attribute__((unused)) static int world_lines(const char *text) {
  int lines = 0;
  for (; *text; text++)
    lines += *text == '\n';
  return lines;
}

#endif
