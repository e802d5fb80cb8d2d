/* Host cost of a call through the shim, by the old C++ symbol and by the operator's boxed kernel, against a direct call
 * of the C API. Driver and torch are the fake ones: what is left is the shim's own and what it asks of torch's C ABI,
 * 22 questions, which the fake answers in about a nanosecond each. One thread: the fake torch counts in one place. */
#include "shim/include/sgl_kernel_compat.h"
#include "tests/bench/operands.h"
#include "tests/shim/fake_torch.h"

enum { MOST_KERNELS = 100 };

typedef void three_tensors(void *output, const void *mat_a, const void *mat_b);
extern three_tensors cxx_router __asm__("_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_");
extern three_tensors cxx_fused_a __asm__("_Z17dsv3_fused_a_gemmRN2at6TensorERKS0_S3_");

struct job {
  int fused, kernels;
  fake_boxed *boxed;
  struct operands operands[MOST_KERNELS];
  struct fake_tensor tensors[MOST_KERNELS][3];
};

static void make(struct job *job, int i) {
  struct operands *o = &job->operands[i];
  operands_make(o, job->fused, i);
  for (int t = 0; t < 3; t++) {
    struct fake_tensor *f = &job->tensors[i][t];
    *f = (struct fake_tensor){.data = o->tensor[t].data,
                              .dim = 2,
                              .dtype = o->tensor[t].dtype == SGL_JIT_DTYPE_FLOAT32 ? FAKE_FLOAT32 : FAKE_BFLOAT16,
                              .device_type = FAKE_CUDA};
    memcpy(f->sizes, o->sizes[t], sizeof o->sizes[t]);
    memcpy(f->strides, o->strides[t], sizeof o->strides[t]);
  }
}

static void direct(void *user, int thread, int calls) {
  struct job *job = user;
  char message[512];
  (void)thread;
  for (int i = 0, at = 0; i < calls; i++) {
    const sgl_jit_tensor *t = job->operands[at].tensor;
    if ((job->fused ? sgl_jit_dsv3_fused_a_gemm : sgl_jit_dsv3_router_gemm)(&t[0], &t[1], &t[2], job, message,
                                                                            sizeof message) != SGL_JIT_OK)
      exit(2);
    at = at + 1 == job->kernels ? 0 : at + 1;
  }
}

static void symbol(void *user, int thread, int calls) {
  struct job *job = user;
  three_tensors *function = job->fused ? cxx_fused_a : cxx_router;
  (void)thread;
  for (int i = 0, at = 0; i < calls; i++) {
    struct fake_tensor *t = job->tensors[at];
    function(&t[0], &t[1], &t[2]);
    at = at + 1 == job->kernels ? 0 : at + 1;
  }
}

static void boxed(void *user, int thread, int calls) {
  struct job *job = user;
  (void)thread;
  for (int i = 0, at = 0; i < calls; i++) {
    struct fake_tensor *t = job->tensors[at];
    uint64_t stack[3] = {(uintptr_t)&t[0], (uintptr_t)&t[1], (uintptr_t)&t[2]};
    job->boxed(stack, 3, 0);
    t[0].deleted = t[1].deleted = t[2].deleted = 0; /* torch would have made new ones */
    at = at + 1 == job->kernels ? 0 : at + 1;
  }
}

static fake_boxed *registered(struct fake_state *state, const char *name) {
  for (int i = 0; i < state->libraries_count; i++)
    if (strcmp(state->libraries[i].key, "CUDA") == 0 && strcmp(state->libraries[i].name, name) == 0)
      return state->libraries[i].kernel;
  exit(2);
}

static sgl_compat_warning_action heard(const sgl_compat_warning *warning, void *user) {
  (void)warning, (void)user;
  return SGL_COMPAT_WARNING_SHOWN;
}

/* The same calls of one kernel in each stage that lets them pass. */
static void print_stages(struct job *job, struct fake_state *state) {
  static const char *const stages[] = {"silent", "warn"};
  job->fused = 0;
  job->kernels = 1;
  job->boxed = registered(state, "dsv3_router_gemm");
  make(job, 0);
  printf("\n%-18s %-22s  %-25s  %-25s\n", "operator", "stage", "old C++ symbol", "operator, boxed");
  for (int i = 0; i < 2; i++) {
    char policy[64];
    snprintf(policy, sizeof policy, "dsv3_router_gemm = %s", stages[i]);
    if (sgl_compat_policy_set(policy, "bench", NULL, 0) != SGL_COMPAT_OK)
      exit(2);
    struct bench_side sides[] = {{.run = symbol, .user = job}, {.run = boxed, .user = job}};
    bench_run(sides, 2, 1);
    printf("%-18s %-22s", "dsv3_router_gemm", i == 0 ? "silent" : "warn, warned before");
    bench_print(&sides[0]);
    bench_print(&sides[1]);
    putchar('\n');
  }
}

int main(void) {
  static const int kernels[] = {1, 8, MOST_KERNELS};
  static struct job job;
  operands_driver();
  fake_state_function *state_of;
  void (*use)(struct fake_state *);
  void *torch = bench_open("shim/fake_torch.so", RTLD_GLOBAL),
       *cuda = bench_open("shim/fake_torch_cuda.so", RTLD_GLOBAL);
  *(void **)&state_of = bench_symbol(torch, "fake_torch_state");
  *(void **)&use = bench_symbol(cuda, "fake_cuda_use");
  struct fake_state *state = state_of();
  use(state);
  if (sgl_compat_register_ops(NULL, 0) != SGL_COMPAT_OK)
    return 2;
  sgl_compat_set_warning_hook(heard, NULL); /* on, as they are by default; each site warns in the round that warms up */
  printf(
      "\nThe shim on an idle fake driver and a fake torch: ns a call, median [tenths 1 .. 9] of %d repetitions of %d "
      "calls\n",
      BENCH_REPETITIONS, BENCH_CALLS);
  printf("%-18s %7s  %-25s  %-25s  %-25s  %s\n", "operator", "kernels", "C API", "old C++ symbol", "operator, boxed",
         "symbol, operator - C API");
  for (int fused = 0; fused < 2; fused++)
    for (int k = 0; k < 3; k++) {
      const char *name = fused ? "dsv3_fused_a_gemm" : "dsv3_router_gemm";
      job.fused = fused;
      job.kernels = kernels[k];
      job.boxed = registered(state, name);
      for (int i = 0; i < job.kernels; i++)
        make(&job, i);
      struct bench_side sides[] = {
          {.run = direct, .user = &job}, {.run = symbol, .user = &job}, {.run = boxed, .user = &job}};
      bench_run(sides, 3, 1);
      printf("%-18s %7d", name, job.kernels);
      for (int i = 0; i < 3; i++)
        bench_print(&sides[i]);
      printf("  %6.1f %6.1f\n", bench_median(&sides[1]) - bench_median(&sides[0]),
             bench_median(&sides[2]) - bench_median(&sides[0]));
    }
  print_stages(&job, state);
  return 0;
}
