/* What is missing or broken around us: the error of a deleted function names the first real cause, in one line, and
 * tells one from another. torch, its CUDA part, the driver, NVRTC and cuBLASLt are stand-ins; one is taken away. */
#include "tests/jit/fakes.h"
#include "tests/shim/world.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Libraries that are not there: files whose names begin with one of these, but for those in one folder. */
static const char *hidden[3], *shown = "";

static bool is_hidden(const char *path) {
  const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
  for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
    if (hidden[i] && strncmp(file, hidden[i], strlen(hidden[i])) == 0)
      return !*shown || strncmp(path, shown, strlen(shown)) != 0;
  return false;
}

void *dlopen(const char *file, int mode) {
  static void *(*real)(const char *, int);
  char other[4200];
  if (!real)
    real = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
  if (!file || !is_hidden(file))
    return real(file, mode);
  snprintf(other, sizeof other, "%s.hidden", file);
  return real(other, mode);
}

int access(const char *path, int mode) {
  return is_hidden(path) ? -1 : faccessat(AT_FDCWD, path, mode, 0);
}

static struct fake_cuda *cuda;
static struct fake_nvrtc *nvrtc;

static void *fake(const char *file, const char *symbol) {
  char path[4200];
  snprintf(path, sizeof path, "%s/../jit/%s", world_folder(), file);
  void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL), *address = handle ? dlsym(handle, symbol) : NULL;
  EXPECT(address != NULL);
  if (!address)
    _exit(1);
  return address;
}

static void quiet(void) {
  EXPECT(sgl_compat_set_warnings(SGL_COMPAT_WARNINGS_OFF, NULL, 0) == SGL_COMPAT_OK);
  unsetenv("SGL_KERNEL_JIT_BACKEND");
  setenv("SGL_KERNEL_JIT_CACHE_DIR", "/dev/null", 1);
  unsetenv("SGL_KERNEL_JIT_NVRTC");
  unsetenv("SGL_KERNEL_JIT_CUBLASLT");
  unsetenv("CUDA_HOME");
  unsetenv("CUDA_PATH");
}

static void with_torch(void) {
  quiet();
  struct fake_state *state = world_torch("fake_torch");
  void *torch_cuda = world_load("fake_torch_cuda", "libtorch_cuda.so", RTLD_LOCAL);
  EXPECT(state && torch_cuda);
  ((void (*)(struct fake_state *))dlsym(torch_cuda, "fake_cuda_use"))(state);
}

static void with_driver(void) {
  with_torch();
  cuda = fake("fake_cuda.so", "fake_cuda");
  cuda->idle = 1;
}

static void router(void *user) {
  struct world_operands *operands = user;
  world_cxx_router(&operands->tensor[0], &operands->tensor[1], &operands->tensor[2]);
}

/* The error of a call with CUDA tensors. */
static const char *router_error(void) {
  static struct world_operands operands;
  world_router(&operands);
  for (int i = 0; i < 3; i++)
    operands.tensor[i].device_type = FAKE_CUDA, operands.tensor[i].device_index = 0;
  world_what[0] = '\0';
  EXPECT(world_throws(router, &operands));
  EXPECT(strchr(world_what, '\n') == NULL);
  return world_what;
}

static void bmm(void *user) {
  struct fake_tensor *t = ((struct world_bmm *)user)->tensor;
  world_cxx_bmm(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], 0);
}

static const char *bmm_error(void) {
  static struct world_bmm operands;
  world_bmm(&operands);
  for (int i = 0; i < 6; i++)
    operands.tensor[i].device_type = FAKE_CUDA, operands.tensor[i].device_index = 0;
  world_what[0] = '\0';
  EXPECT(world_throws(bmm, &operands));
  EXPECT(strchr(world_what, '\n') == NULL);
  return world_what;
}

#define IS(text, wanted) EXPECT_CONTAINS(text, wanted)
static void begins(const char *text, const char *wanted, int line) {
  if (strncmp(text, wanted, strlen(wanted)) == 0)
    return;
  world_failures++;
  fprintf(stderr, "  %s:%d: \"%s\" does not begin with \"%s\"\n", __FILE__, line, text, wanted);
}
#define BEGINS(text, wanted) begins(text, wanted, __LINE__)

/* --- torch --- */

static void no_torch(void) {
  quiet();
  hidden[0] = "libcuda.so"; /* nor anything else */
  BEGINS(router_error(),
         "dsv3_router_gemm: no torch is loaded in this process (no libtorch_cpu.so): import torch first");
}
static void old_torch(void) {
  quiet();
  EXPECT(world_torch("fake_torch23") != NULL);
  BEGINS(router_error(), "dsv3_router_gemm: the torch in this process is too old, 2.6 is needed: /");
  IS(world_what, "/libtorch_cpu.so has no function aoti_torch_check");
}
static void torch_without_cuda(void) {
  quiet();
  EXPECT(world_torch("fake_torch") != NULL);
  BEGINS(router_error(), "dsv3_router_gemm: torch does not tell its current stream of cuda:0: this process has no "
                         "libtorch_cuda.so");
  EXPECT(world_load("fake_copy_of_us", "libtorch_hip.so", RTLD_LOCAL) != NULL);
  IS(router_error(), "this process has no libtorch_cuda.so, its torch is built for ROCm");
}
static void torch(void) {
  world_child(no_torch);
  world_child(old_torch);
  world_child(torch_without_cuda);
}

/* --- the driver --- */

static void no_driver(void) {
  with_torch();
  hidden[0] = "libcuda.so";
  hidden[1] = "libnvrtc.so"; /* not the first cause */
  hidden[2] = "libcublasLt.so";
  BEGINS(router_error(), "dsv3_router_gemm: no CUDA driver: ");
  BEGINS(bmm_error(), "bmm_fp8: no CUDA driver: ");
}
static void no_device(void) {
  with_driver();
  cuda->init_error = 100;
  BEGINS(router_error(), "dsv3_router_gemm: cuInit failed with CUDA_ERROR_NO_DEVICE");
  cuda->init_error = 0;
  cuda->device_count = 0;
  BEGINS(router_error(), "dsv3_router_gemm: the CUDA driver has no device (see CUDA_VISIBLE_DEVICES)");
}
static void other_architecture(void) {
  with_driver();
  hidden[0] = "libnvrtc.so";
  cuda->major = 7;
  cuda->minor = 5;
  BEGINS(router_error(), "dsv3_router_gemm: cuda:0 has compute capability 7.5, this needs 8.0 or newer");
}
static void too_old_for_fp8(void) {
  with_driver();
  hidden[0] = "libcublasLt.so";
  cuda->major = 8;
  cuda->minor = 6;
  BEGINS(bmm_error(), "bmm_fp8: cuda:0 has compute capability 8.6, FP8 products need 8.9 or newer");
}
static void driver(void) {
  world_child(no_driver);
  world_child(no_device);
  world_child(other_architecture);
  world_child(too_old_for_fp8);
}

/* --- libraries of the toolkit --- */

static void no_toolkit(void) {
  with_driver();
  hidden[0] = "libnvrtc.so";
  hidden[1] = "libcublasLt.so";
  BEGINS(router_error(), "dsv3_router_gemm: no usable cached kernel and no NVRTC (libnvrtc.so.13 or .12): install");
  BEGINS(bmm_error(), "bmm_fp8: no cuBLASLt (libcublasLt.so.13 or .12): install");
}

/* This program with another machine in its header. */
static void write_foreign(const char *path) {
  unsigned char header[64];
  int own = open("/proc/self/exe", O_RDONLY), file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  EXPECT(own >= 0 && read(own, header, sizeof header) == sizeof header);
  header[18] ^= 1; /* e_machine */
  EXPECT(file >= 0 && write(file, header, sizeof header) == sizeof header);
  close(own);
  close(file);
}

/* Files that are there, in a toolkit that CUDA_HOME names, and are not what they should be. */
static void damaged_toolkit(void) {
  with_driver();
  char home[] = "/tmp/sgl-broken-XXXXXX", lib[64], path[2][128], want[256];
  static const char *const files[2] = {"libnvrtc.so.13", "libcublasLt.so.13"};
  EXPECT(mkdtemp(home) != NULL);
  snprintf(lib, sizeof lib, "%s/lib64", home);
  EXPECT(mkdir(lib, 0700) == 0);
  for (int i = 0; i < 2; i++) {
    snprintf(path[i], sizeof path[i], "%s/%s", lib, files[i]);
    int file = open(path[i], O_WRONLY | O_CREAT, 0600);
    EXPECT(file >= 0 && write(file, "no ELF", 6) == 6 && close(file) == 0);
  }
  setenv("CUDA_HOME", home, 1);
  hidden[0] = "libnvrtc.so"; /* what this machine has */
  hidden[1] = "libcublasLt.so";
  shown = home;
  router_error();
  snprintf(want, sizeof want, "dsv3_router_gemm: NVRTC cannot be loaded: %s: ", path[0]);
  BEGINS(world_what, want);
  IS(world_what, "; repair it, or name another file in SGL_KERNEL_JIT_NVRTC");
  bmm_error();
  snprintf(want, sizeof want, "bmm_fp8: cuBLASLt cannot be loaded: %s: ", path[1]);
  BEGINS(world_what, want);
  IS(world_what, "; repair it, or name another file in SGL_KERNEL_JIT_CUBLASLT");
  setenv("SGL_KERNEL_JIT_NVRTC", path[0], 1);
  snprintf(want, sizeof want, "dsv3_router_gemm: SGL_KERNEL_JIT_NVRTC names no usable library: %s: ", path[0]);
  BEGINS(router_error(), want);
  write_foreign(path[0]);
  IS(router_error(), "libnvrtc.so.13: made for another kind of processor");
  unsetenv("SGL_KERNEL_JIT_NVRTC");
  IS(router_error(), "libnvrtc.so.13: made for another kind of processor; repair it");
  for (int i = 0; i < 2; i++)
    unlink(path[i]);
  rmdir(lib);
  rmdir(home);
}

static void old_compiler(void) {
  with_driver();
  nvrtc = fake("fake_nvrtc.so", "fake_nvrtc");
  nvrtc->major = 11;
  nvrtc->minor = 8;
  BEGINS(router_error(), "dsv3_router_gemm: NVRTC 11.8 is too old, 12.1 is needed");
}
static void compiler_without_builtins(void) {
  with_driver();
  nvrtc = fake("fake_nvrtc.so", "fake_nvrtc");
  nvrtc->compile_error = 7; /* NVRTC_ERROR_BUILTIN_OPERATION_FAILURE */
  BEGINS(router_error(), "dsv3_router_gemm: NVRTC 13.0 found no libnvrtc-builtins.so.13.0 beside it");
}
static void toolkit(void) {
  world_child(no_toolkit);
  world_child(damaged_toolkit);
  world_child(old_compiler);
  world_child(compiler_without_builtins);
}

static const struct unit_test tests[] = {
    {"torch", torch},
    {"driver", driver},
    {"toolkit", toolkit},
};
UNIT_MAIN("shim.broken", tests)
