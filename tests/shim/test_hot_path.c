/* What a warm call through the shim does: torch's functions, the driver's, and nothing else outside of this program -
 * no lock, no allocation, no look at the environment, a file or the loader. */
#include "tests/jit/fakes.h"
#include "tests/shim/world.h"
#include "tests/steps.h"

/* Of the shim and the JIT library; the same on a busy machine. */
enum { MOST_INSTRUCTIONS = 2300 };

static const char *const allowed[] = {
    "libc.so.6:__errno_location", "fake_torch.so:", "fake_torch_cuda.so:", "fake_cuda.so:", "fake_cublaslt.so:", NULL};
static struct fake_state *state;
static enum { ROUTER, FUSED_A, BMM } called;
static bool boxed;

static void *open_fake(const char *file) {
  char path[4200];
  snprintf(path, sizeof path, "%s/%s", world_folder(), file);
  void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!handle)
    fprintf(stderr, "  %s\n", dlerror());
  return handle;
}

/* In the parent, where addresses get their names; they do nothing by themselves. */
static void open_fakes(void) {
  if (state)
    return;
  setenv("SGL_KERNEL_JIT_NVRTC", "libnvrtc.so.13", 1); /* its name, loaded */
  setenv("SGL_KERNEL_JIT_CUBLASLT", "libcublasLt.so.13", 1);
  setenv("SGL_KERNEL_JIT_CACHE_DIR", "/dev/null", 1);
  void *torch = open_fake("fake_torch.so"), *torch_cuda = open_fake("fake_torch_cuda.so");
  void *cuda = open_fake("../jit/fake_cuda.so"), *nvrtc = open_fake("../jit/fake_nvrtc.so");
  void *blas = open_fake("../jit/fake_cublaslt.so");
  CU_ASSERT_FATAL(torch && torch_cuda && cuda && nvrtc && blas);
  ((struct fake_cuda *)dlsym(cuda, "fake_cuda"))->idle = 1;
  ((struct fake_nvrtc *)dlsym(nvrtc, "fake_nvrtc"))->idle = 1;
  ((struct fake_cublaslt *)dlsym(blas, "fake_cublaslt"))->idle = 1;
  state = ((fake_state_function *)dlsym(torch, "fake_torch_state"))();
  ((void (*)(struct fake_state *))dlsym(torch_cuda, "fake_cuda_use"))(state);
  ((fake_cuda_context_function *)dlsym(cuda, "fake_cuda_context"))(0, 1); /* the child's current context too */
}

static fake_boxed *registered(void) {
  sgl_compat_register_ops(NULL, 0);
  static const char *const names[] = {"dsv3_router_gemm", "dsv3_fused_a_gemm", "bmm_fp8"};
  const char *name = names[called];
  for (int i = 0; i < state->libraries_count; i++)
    if (strcmp(state->libraries[i].key, "CUDA") == 0 && strcmp(state->libraries[i].name, name) == 0)
      return state->libraries[i].kernel;
  return NULL;
}

static sgl_compat_warning_action heard(const sgl_compat_warning *warning, void *user) {
  (void)warning, (void)user;
  return SGL_COMPAT_WARNING_SHOWN;
}

static void call_symbol(struct fake_tensor *t) {
  if (called == BMM)
    world_cxx_bmm(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], 0);
  else
    (called == FUSED_A ? world_cxx_fused_a : world_cxx_router)(&t[0], &t[1], &t[2]);
}

static void body(void) {
  static struct world_operands operands;
  static struct world_bmm bmm;
  if (called == BMM)
    world_bmm(&bmm);
  else
    (called == FUSED_A ? world_fused_a : world_router)(&operands);
  struct fake_tensor *tensor = called == BMM ? bmm.tensor : operands.tensor;
  int count = called == BMM ? 6 : 3;
  fake_boxed *kernel = registered();
  sgl_compat_set_warning_hook(heard, NULL); /* warnings are on, as they are where nobody has done anything */
  uint64_t stack[7] = {0};
  for (int i = 0; i < count; i++) {
    tensor[i].device_type = FAKE_CUDA;
    tensor[i].device_index = 0;
    stack[i] = (uint64_t)(uintptr_t)&tensor[i];
  }
  for (int round = 0;; round++) { /* from one call site: the first call warns, the second has resolved everything */
    if (round == 2)
      steps_begin();
    if (boxed)
      kernel(stack, called == BMM ? 7 : 3, 0);
    else
      call_symbol(tensor);
    if (round == 2)
      steps_end();
    for (int i = 0; i < count; i++)
      tensor[i].deleted = 0;
  }
}

static void warm_call(bool through_torch, int which) {
  boxed = through_torch;
  called = which;
  open_fakes();
  struct steps s = steps_of(body);
  if (s.refused) {
    UNIT_SKIP("no ptrace here");
    return;
  }
  CU_ASSERT_EQUAL(s.failed, 0);
  UNIT_STRINGS(steps_forbidden(&s, allowed), "");
  CU_ASSERT(s.functions >= 10); /* it did come to torch and to the driver */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (s.own > MOST_INSTRUCTIONS)
    fprintf(stderr, "  a warm call takes %ld instructions, %d are allowed\n", s.own, MOST_INSTRUCTIONS);
  CU_ASSERT(s.own <= MOST_INSTRUCTIONS);
#endif
}

static void router_symbol(void) {
  warm_call(false, ROUTER);
}
static void fused_a_symbol(void) {
  warm_call(false, FUSED_A);
}
static void bmm_symbol(void) {
  warm_call(false, BMM);
}
static void router_operator(void) {
  warm_call(true, ROUTER);
}
static void fused_a_operator(void) {
  warm_call(true, FUSED_A);
}
static void bmm_operator(void) {
  warm_call(true, BMM);
}

static const struct unit_test tests[] = {
    {"router_symbol", router_symbol},     {"fused_a_symbol", fused_a_symbol},     {"bmm_symbol", bmm_symbol},
    {"router_operator", router_operator}, {"fused_a_operator", fused_a_operator}, {"bmm_operator", bmm_operator},
};
UNIT_MAIN("shim.hot_path", tests)
