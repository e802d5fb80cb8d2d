/* How kernels come to a process, on the fake driver and compiler: many processes at once, a compile that is killed or
 * fails, disks that take nothing, the prebuilt folder, kernels asked for ahead of their use, the monitor and the
 * counters. */
#include "cases.h"
#include "jit/internal.h"
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>

static sgl_jit_counters counters(void) {
  sgl_jit_counters now;
  sgl_jit_get_counters(&now, sizeof now);
  return now;
}

static const sgl_jit_kernel_spec router_spec = {SGL_JIT_OP_DSV3_ROUTER_GEMM, 8, 256, SGL_JIT_DTYPE_FLOAT32};
static const sgl_jit_kernel_spec wide_spec = {SGL_JIT_OP_DSV3_ROUTER_GEMM, 16, 256, SGL_JIT_DTYPE_FLOAT32};
static const sgl_jit_kernel_spec fused_spec = {SGL_JIT_OP_DSV3_FUSED_A_GEMM, 16, 256, SGL_JIT_DTYPE_BFLOAT16};

enum { WRONG = 100 };

/* What a process does that is one of many: a call of each kernel. Its exit status: how often it compiled, or WRONG. */
static int calls_both(void *argument) {
  (void)argument;
  struct gemm g = router_call(), f = fused_call(3, 256);
  bool good = gemm_run(&g) == SGL_JIT_OK && gemm_wrong(&g, 1e-6) == 0 && gemm_run(&f) == SGL_JIT_OK &&
              gemm_wrong(&f, 1e-6) == 0;
  if (!good)
    fprintf(stderr, "  %s%s\n", g.message, f.message);
  return good ? fakes.nvrtc->compiled : WRONG;
}

static int calls_router(void *argument) {
  (void)argument;
  struct gemm g = router_call();
  return gemm_run(&g) == SGL_JIT_OK && gemm_wrong(&g, 1e-6) == 0 ? fakes.nvrtc->compiled : WRONG;
}

/* Compiles say that they have begun, and wait until they are let go. */
static struct { int told[2], held[2]; } pipes;

static void hold_compiles(void) {
  CU_ASSERT_EQUAL(pipe(pipes.told), 0);
  CU_ASSERT_EQUAL(pipe(pipes.held), 0);
  fakes.nvrtc->told = pipes.told[1];
  fakes.nvrtc->held = pipes.held[0];
}

static void let_go(int compiles) {
  char bytes[64] = "";
  CU_ASSERT_EQUAL(write(pipes.held[1], bytes, (size_t)compiles), compiles);
}

static int begun_and_unheard(void) {
  int bytes = -1;
  ioctl(pipes.told[0], FIONREAD, &bytes);
  return bytes;
}

/* --- many processes --- */

CASE(sixteen_processes) {
  enum { PROCESSES = 16 };
  pid_t pids[PROCESSES];
  int compiled = 0, wrong = 0;
  hold_compiles();
  for (int i = 0; i < PROCESSES; i++)
    pids[i] = start_process(calls_both, NULL);
  CU_ASSERT(heard(pipes.told[0], 1));
  usleep(200000); /* the others come too, and would compile if they could */
  CU_ASSERT_EQUAL(begun_and_unheard(), 0);
  let_go(2 * PROCESSES);
  for (int i = 0; i < PROCESSES; i++) {
    int status = end_process(pids[i]);
    wrong += status < 0 || status >= WRONG;
    compiled += status;
  }
  CU_ASSERT_EQUAL(wrong, 0);
  CU_ASSERT_EQUAL(compiled, 2); /* one for each kernel */
  CU_ASSERT_EQUAL(files_with(folder.text, "dsv3_", NULL), 2);
  CU_ASSERT_EQUAL(files_with(folder.text, "", NULL), 4); /* and the two locks */
}

/* The same with the real NVRTC, whose cubins the fake driver loads. */
static int opens_nvrtc(void *argument) {
  const struct jit_compiler *compiler;
  (void)argument;
  return jit_compiler(13000, &compiler, (struct jit_message){NULL, 0, NULL}) == SGL_JIT_OK;
}

/* The installed one, or the one that `make deps` has put into the build folder. */
static bool use_real_nvrtc(void) {
  static const char *const files[] = {"cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12"};
  const char *build = getenv("BUILD_DIR");
  unsetenv("SGL_KERNEL_JIT_NVRTC");
  if (end_process(start_process(opens_nvrtc, NULL)) == 1)
    return true;
  for (int i = 0; build && i < 4; i++) { /* a variant's folder lies below the one with the dependencies */
    char path[4096];
    snprintf(path, sizeof path, "%s/%sdeps/nvrtc/nvidia/%s", build, i / 2 ? "../" : "", files[i % 2]);
    setenv("SGL_KERNEL_JIT_NVRTC", path, 1);
    if (access(path, R_OK) == 0 && end_process(start_process(opens_nvrtc, NULL)) == 1)
      return true;
  }
  unsetenv("SGL_KERNEL_JIT_NVRTC");
  return false;
}

static int warms_router(void *argument) {
  (void)argument;
  char message[512];
  sgl_jit_status status = sgl_jit_warm(&router_spec, 0, message, sizeof message);
  if (status != SGL_JIT_OK)
    fprintf(stderr, "  %s\n", message);
  return status == SGL_JIT_OK ? (int)counters().compiles : WRONG;
}

static int warm_with_fake_driver(void *argument) {
  return dlopen(path_in(own_folder(), "fake_cuda.so").text, RTLD_NOW) ? warms_router(argument) : WRONG;
}

static void sixteen_processes_and_nvrtc(void) {
  enum { PROCESSES = 16 };
  pid_t pids[PROCESSES];
  int compiled = 0;
  if (!use_real_nvrtc()) {
    UNIT_SKIP("no NVRTC");
    return;
  }
  start_cache();
  for (int i = 0; i < PROCESSES; i++)
    pids[i] = start_process(warm_with_fake_driver, NULL);
  for (int i = 0; i < PROCESSES; i++)
    compiled += end_process(pids[i]);
  CU_ASSERT_EQUAL(compiled, 1);
  CU_ASSERT_EQUAL(files_with(folder.text, "dsv3_", NULL), 1);
  remove_tree(folder);
}

/* The one that compiles is killed; one of those that wait goes on. */
CASE(killed_while_compiling) {
  hold_compiles();
  pid_t victim = start_process(calls_router, NULL);
  CU_ASSERT(heard(pipes.told[0], 1));
  fakes.nvrtc->told = fakes.nvrtc->held = 0;
  pid_t others[3];
  for (int i = 0; i < 3; i++)
    others[i] = start_process(calls_router, NULL);
  usleep(50000);
  int done = 0;
  for (int i = 0; i < 3; i++)
    done += waitpid(others[i], NULL, WNOHANG) != 0;
  CU_ASSERT_EQUAL(done, 0); /* they wait */
  kill(victim, SIGKILL);
  CU_ASSERT_EQUAL(end_process(victim), -SIGKILL);
  int compiled = 0;
  for (int i = 0; i < 3; i++)
    compiled += end_process(others[i]);
  CU_ASSERT_EQUAL(compiled, 1);
}

static int fails_to_compile(void *argument) {
  struct gemm g = router_call();
  fakes.nvrtc->compile_error = *(int *)argument;
  return gemm_run(&g) == SGL_JIT_ERROR_COMPILE ? fakes.nvrtc->compiled : WRONG;
}

/* Each of them tries, and nobody waits for somebody who has failed. */
CASE(failed_compile_lets_others_try) {
  pid_t pids[4];
  int error = 6, compiled = 0;
  for (int i = 0; i < 4; i++)
    pids[i] = start_process(fails_to_compile, &error);
  for (int i = 0; i < 4; i++)
    compiled += end_process(pids[i]);
  CU_ASSERT_EQUAL(compiled, 4);
  CU_ASSERT_EQUAL(end_process(start_process(calls_router, NULL)), 1);
  CU_ASSERT_EQUAL(end_process(start_process(calls_router, NULL)), 0);
}

/* --- threads --- */

struct caller {
  pthread_t thread;
  struct gemm g;
  int failed;
};

static void *call(void *argument) {
  struct caller *c = argument;
  c->failed = gemm_run(&c->g) != SGL_JIT_OK || gemm_wrong(&c->g, 1e-6) != 0;
  return NULL;
}

static void start_call(struct caller *c, struct gemm g) {
  c->g = g;
  CU_ASSERT_EQUAL(pthread_create(&c->thread, NULL, call, c), 0);
}

static void end_call(struct caller *c) {
  pthread_join(c->thread, NULL);
  CU_ASSERT_EQUAL(c->failed, 0);
}

/* Different kernels are compiled side by side; the same one, for whichever device, once; and what is loaded is found
 * meanwhile. */
CASE(threads_wait_for_their_own_kernel) {
  struct caller callers[5];
  struct gemm loaded = router_call(), again = router_call(), other_device = router_call(), wider = router_call();
  WORKS(loaded);
  again.k = other_device.k = 512;
  gemm_make(&again, true);
  gemm_make(&other_device, true);
  other_device.device = 1;
  wider.n = 16;
  gemm_make(&wider, true);
  hold_compiles();
  start_call(&callers[0], again);
  start_call(&callers[1], other_device);
  start_call(&callers[2], again);
  start_call(&callers[3], wider);
  start_call(&callers[4], fused_call(3, 256));
  CU_ASSERT(heard(pipes.told[0], 3)); /* all three compiles have begun, and none has ended */
  WORKS(loaded);
  usleep(20000);
  CU_ASSERT_EQUAL(begun_and_unheard(), 0);
  let_go(5);
  for (int i = 0; i < 5; i++)
    end_call(&callers[i]);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 4);
  CU_ASSERT_EQUAL(fakes.count("cuLibraryLoadData"), 5);
}

static void *compile_router(void *status) {
  *(sgl_jit_status *)status = sgl_jit_compile(&router_spec, "sm_90a", NULL, 0);
  return NULL;
}

static int compile_in_child(void *argument) {
  char message[512];
  const sgl_jit_kernel_spec *spec = argument;
  alarm(20);
  sgl_jit_status status = sgl_jit_compile(spec, "sm_90a", message, sizeof message);
  return status == SGL_JIT_OK                                                                             ? 0
         : status == SGL_JIT_ERROR_NO_COMPILER && strstr(message, "forked while another thread compiled") ? 1
                                                                                                          : WRONG;
}

/* A fork while a thread compiles: the child gets an error, and does not wait for a thread that it does not have. A fork
 * of a process that compiles nothing at the time is as good as any. */
CASE(fork_while_compiling) {
  pthread_t thread;
  sgl_jit_status status = SGL_JIT_ERROR_INTERNAL;
  sgl_jit_kernel_spec router = router_spec, fused = fused_spec;
  hold_compiles();
  pthread_create(&thread, NULL, compile_router, &status);
  CU_ASSERT(heard(pipes.told[0], 1));
  CU_ASSERT_EQUAL(end_process(start_process(compile_in_child, &router)), 1);
  CU_ASSERT_EQUAL(end_process(start_process(compile_in_child, &fused)), 1);
  let_go(1);
  pthread_join(thread, NULL);
  CU_ASSERT_EQUAL(status, SGL_JIT_OK);
  let_go(1);
  CU_ASSERT_EQUAL(end_process(start_process(compile_in_child, &fused)), 0);
}

/* --- no room --- */

/* The call works from memory, and what could not be written is compiled again by the next process. */
static int works_without_cache(void) {
  struct gemm g = router_call();
  bool good = gemm_run(&g) == SGL_JIT_OK && gemm_wrong(&g, 1e-6) == 0 && gemm_run(&g) == SGL_JIT_OK;
  sgl_jit_counters c = counters();
  return good && fakes.nvrtc->compiled == 1 && c.bytes_written == 0 && files_with(folder.text, "dsv3_", NULL) == 0 &&
                 files_with(folder.text, ".new-", NULL) == 0
             ? 0
             : 1;
}

static int on_small_disk(void *argument) {
  (void)argument;
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount("tmpfs", folder.text, "tmpfs", 0, "size=8k,mode=0700") != 0)
    return 77;
  return works_without_cache();
}

static int full_disk_status;

/* In a child of its own: the parent decides whether it could be tried. */
static void full_disk(void) {
  start_cache();
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    fakes = use_fakes("fake_cuda.so");
    _exit(on_small_disk(NULL));
  }
  full_disk_status = end_process(pid);
  if (full_disk_status == 77)
    UNIT_SKIP("this user may not mount a small disk");
  else
    CU_ASSERT_EQUAL(full_disk_status, 0);
  remove_tree(folder);
}

static int without_home(void *argument) {
  (void)argument;
  unsetenv("SGL_KERNEL_JIT_CACHE_DIR");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  return works_without_cache();
}

/* The modes of files bind root too, once it has no capabilities. Another user might not be let into the folder of this
 * program. */
static int without_privileges(void *argument) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
  if (syscall(SYS_capset, &header, none) != 0)
    return 2;
  return argument ? calls_router(NULL) : works_without_cache();
}

CASE(no_home_and_read_only_home) {
  CU_ASSERT_EQUAL(end_process(start_process(without_home, NULL)), 0);
  CU_ASSERT_EQUAL(chmod(folder.text, 0555), 0);
  CU_ASSERT_EQUAL(end_process(start_process(without_privileges, NULL)), 0);
  CU_ASSERT_EQUAL(files_with(folder.text, "", NULL), 0);
  CU_ASSERT_EQUAL(chmod(folder.text, 0755), 0); /* now it may be written */
  CU_ASSERT_EQUAL(end_process(start_process(without_privileges, folder.text)), 1);
  CU_ASSERT_EQUAL(chmod(folder.text, 0555), 0); /* and read only again, which is enough for what it has */
  CU_ASSERT_EQUAL(end_process(start_process(without_privileges, folder.text)), 0);
  CU_ASSERT_EQUAL(chmod(folder.text, 0755), 0);
}

/* --- kernels ahead of their first use --- */

static void ahead(sgl_jit_status wanted, sgl_jit_status got, const char *message, const char *text) {
  CU_ASSERT_EQUAL(got, wanted);
  UNIT_STRINGS(message, text);
}

#define WARM(spec, device, status_wanted, text)                                                                        \
  do {                                                                                                                 \
    char said[512] = "";                                                                                               \
    sgl_jit_status got = sgl_jit_warm((spec), (device), said, sizeof said);                                            \
    ahead(status_wanted, got, said, text);                                                                             \
  } while (0)
#define COMPILE(spec, target, status_wanted, text)                                                                     \
  do {                                                                                                                 \
    char said[512] = "";                                                                                               \
    sgl_jit_status got = sgl_jit_compile((spec), (target), said, sizeof said);                                         \
    ahead(status_wanted, got, said, text);                                                                             \
  } while (0)

CASE(warm) {
  struct gemm g = router_call(), f = fused_call(3, 256);
  errno = 4321;
  for (int i = 0; i < 2; i++)
    WARM(&router_spec, 0, SGL_JIT_OK, "");
  WARM(&fused_spec, 1, SGL_JIT_OK, "");
  CU_ASSERT_EQUAL(errno, 4321);
  CU_ASSERT_EQUAL(fakes.count("cuLaunchKernel") + fakes.count("cuLaunchKernelEx"), 0);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 2);
  CU_ASSERT_EQUAL(fakes.count("cuLibraryLoadData"), 2);
  CU_ASSERT_EQUAL(fakes.count("cuCtxPushCurrent"), fakes.count("cuCtxPopCurrent"));
  WORKS(g);
  f.device = 1;
  WORKS(f);
  CU_ASSERT_EQUAL(fakes.count("cuLibraryLoadData"), 2);
  f.device = 0;
  WORKS(f); /* the other device's is loaded when it is needed, from the cache */
  CU_ASSERT_EQUAL(fakes.count("cuLibraryLoadData"), 3);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 2);
  WARM(&router_spec, 2, SGL_JIT_ERROR_INVALID_ARGUMENT, "sgl_jit_warm: there is no cuda:2, the driver has 2 devices");
  WARM(&router_spec, -1, SGL_JIT_ERROR_INVALID_ARGUMENT, "sgl_jit_warm: there is no cuda:-1, the driver has 2 devices");
}

CASE(wrong_specs) {
  static const struct {
    sgl_jit_kernel_spec spec;
    const char *text;
  } wrong[] = {
      {{(sgl_jit_op)99, 8, 256, SGL_JIT_DTYPE_FLOAT32}, "there is no operator 99"},
      {{SGL_JIT_OP_DOWNCAST_FP8, 0, 256, SGL_JIT_DTYPE_OTHER},
       "n, k and output_dtype of downcast_fp8 must be 0, one kernel serves every shape"},
      {{(sgl_jit_op)-1, 8, 256, SGL_JIT_DTYPE_FLOAT32}, "there is no operator -1"},
      {{SGL_JIT_OP_DSV3_ROUTER_GEMM, 12, 256, SGL_JIT_DTYPE_FLOAT32},
       "n (num_experts) must be a positive multiple of 8 up to 1024, got 12"},
      {{SGL_JIT_OP_DSV3_ROUTER_GEMM, 1032, 256, SGL_JIT_DTYPE_FLOAT32},
       "n (num_experts) must be a positive multiple of 8 up to 1024, got 1032"},
      {{SGL_JIT_OP_DSV3_ROUTER_GEMM, 8, 0, SGL_JIT_DTYPE_FLOAT32},
       "k (hidden_dim) must be a positive multiple of 256 up to 16777216, got 0"},
      {{SGL_JIT_OP_DSV3_FUSED_A_GEMM, 8, 256, SGL_JIT_DTYPE_BFLOAT16},
       "n (hd_out) must be a positive multiple of 16 up to 16777216, got 8"},
      {{SGL_JIT_OP_DSV3_FUSED_A_GEMM, 16, INT64_C(256) << 32, SGL_JIT_DTYPE_BFLOAT16},
       "k (hd_in) must be a positive multiple of 256 up to 16777216, got 1099511627776"},
      {{SGL_JIT_OP_DSV3_FUSED_A_GEMM, 16, -256, SGL_JIT_DTYPE_BFLOAT16},
       "k (hd_in) must be a positive multiple of 256 up to 16777216, got -256"},
      {{SGL_JIT_OP_DSV3_FUSED_A_GEMM, 16, 256, SGL_JIT_DTYPE_FLOAT32}, "output_dtype must be bfloat16, got float32"},
      {{SGL_JIT_OP_DSV3_ROUTER_GEMM, 8, 256, SGL_JIT_DTYPE_OTHER},
       "output_dtype must be float32 or bfloat16, got another dtype"},
  };
  char text[200];
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    snprintf(text, sizeof text, "sgl_jit_warm: %s", wrong[i].text);
    WARM(&wrong[i].spec, 0, SGL_JIT_ERROR_INVALID_ARGUMENT, text);
    snprintf(text, sizeof text, "sgl_jit_compile: %s", wrong[i].text);
    COMPILE(&wrong[i].spec, "sm_90a", SGL_JIT_ERROR_INVALID_ARGUMENT, text);
  }
  WARM(NULL, 0, SGL_JIT_ERROR_INVALID_ARGUMENT, "sgl_jit_warm: spec is NULL");
  CU_ASSERT_EQUAL(sgl_jit_warm(NULL, 0, NULL, 0), SGL_JIT_ERROR_INVALID_ARGUMENT);
  COMPILE(NULL, "sm_90a", SGL_JIT_ERROR_INVALID_ARGUMENT, "sgl_jit_compile: spec is NULL");
  static const char *const targets[] = {"",        "sm_",     "sm_90", "sm_75",   "sm_80a",        "compute_90",
                                        "sm_90a ", "sm_090a", "sm_9a", "sm_90aa", "sm_4294967386a"};
  for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
    snprintf(text, sizeof text,
             "sgl_jit_compile: target must be one that devices look for, such as sm_80, sm_86, sm_89, sm_90a, sm_100a, "
             "sm_103a or sm_120a, got %s",
             targets[i]);
    COMPILE(&router_spec, targets[i], SGL_JIT_ERROR_INVALID_ARGUMENT, text);
  }
  CU_ASSERT_EQUAL(sgl_jit_compile(&router_spec, NULL, NULL, 0), SGL_JIT_ERROR_INVALID_ARGUMENT);
  COMPILE(&router_spec, "sm_90a", SGL_JIT_OK, "");
  COMPILE(&router_spec, "sm_321a", SGL_JIT_ERROR_UNSUPPORTED,
          "sgl_jit_compile: this NVRTC does not know the target sm_321a");
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 1);
  CU_ASSERT_EQUAL(fakes.count(""), 0);
}

/* With the compiler alone: this machine has no driver, or at least none is loaded. */
static void compile_without_driver_body(void) {
  use_store();
  setenv("SGL_KERNEL_JIT_NVRTC", path_in(own_folder(), "fake_nvrtc.so").text, 1);
  errno = 4321;
  COMPILE(&router_spec, "sm_90a", SGL_JIT_OK, "");
  COMPILE(&router_spec, "sm_100a", SGL_JIT_OK, "");
  COMPILE(&fused_spec, "sm_90a", SGL_JIT_OK, "");
  COMPILE(&router_spec, "sm_90a", SGL_JIT_OK, ""); /* is there */
  CU_ASSERT_EQUAL(errno, 4321);
  CU_ASSERT_PTR_NULL(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
  sgl_jit_counters c = counters();
  CU_ASSERT_EQUAL(c.compiles, 3);
  CU_ASSERT_EQUAL(c.cache_hits, 1);
  CU_ASSERT_EQUAL(c.cache_misses, 3);
  CU_ASSERT_EQUAL(c.loads, 0);
  CU_ASSERT_EQUAL(files_with(folder.text, "dsv3_router_gemm-", NULL), 2);
  CU_ASSERT_EQUAL(files_with(folder.text, "dsv3_fused_a_gemm-", NULL), 1);
}

static void use_without_compiler_body(void) {
  struct gemm g = router_call(), f = fused_call(3, 256);
  setenv("SGL_KERNEL_JIT_NVRTC", "/nonexistent", 1);
  WORKS(g);
  WORKS(f);
  CU_ASSERT_EQUAL(counters().cache_hits, 2);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 0);
}

static void compile_without_driver(void) {
  start_cache();
  in_child(compile_without_driver_body);
  in_child_with_fakes("fake_cuda.so", use_without_compiler_body);
  remove_tree(folder);
}

CASE(compile_needs_a_folder) {
  setenv("SGL_KERNEL_JIT_CACHE_DIR", "/proc/none", 1);
  COMPILE(&router_spec, "sm_90a", SGL_JIT_ERROR_CACHE,
          "sgl_jit_compile: the cache folder /proc/none (SGL_KERNEL_JIT_CACHE_DIR) cannot be used: No such file or "
          "directory");
  setenv("SGL_KERNEL_JIT_CACHE_DIR", "here", 1);
  COMPILE(&router_spec, "sm_90a", SGL_JIT_ERROR_CACHE,
          "sgl_jit_compile: there is no cache folder: SGL_KERNEL_JIT_CACHE_DIR is not an absolute path: here");
  setenv("SGL_KERNEL_JIT_CACHE_DIR", folder.text, 1);
  COMPILE(&router_spec, "sm_90a", SGL_JIT_OK, "");
}

/* --- prebuilt kernels --- */

static struct path shipped;

static void prebuilt_alone_body(void) {
  struct gemm g = router_call();
  setenv("SGL_KERNEL_JIT_NVRTC", "/nonexistent", 1);
  WORKS(g);
  sgl_jit_counters c = counters();
  CU_ASSERT_EQUAL(c.prebuilt_hits, 1);
  CU_ASSERT_EQUAL(c.cache_hits, 0);
  CU_ASSERT_EQUAL(c.cache_misses, 0);
  CU_ASSERT_EQUAL(c.compiles, 0);
  CU_ASSERT_EQUAL(c.bytes_written, 0);
  CU_ASSERT_EQUAL(files_with(folder.text, "", NULL), 0); /* it is not copied, and nothing is locked */
  g.k = 512;
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_NO_COMPILER); /* what is not there needs a compiler */
}

static void own_before_prebuilt_body(void) {
  struct gemm g = router_call();
  WORKS(g);
  CU_ASSERT_EQUAL(counters().cache_hits, 1);
  CU_ASSERT_EQUAL(counters().prebuilt_hits, 0);
}

/* A damaged one is as good as none; a refused one too. */
static void bad_prebuilt_body(void) {
  struct gemm g = router_call();
  WORKS(g);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 1);
  CU_ASSERT_EQUAL(counters().bad_entries, 1);
  CU_ASSERT_EQUAL(counters().cache_misses, 1);
  CU_ASSERT_EQUAL(files_with(folder.text, "dsv3_", NULL), 1); /* the new one is in the cache, ... */
}

static void prebuilt_folder(void) {
  start_cache();
  shipped = folder;
  in_child_with_fakes("fake_cuda.so", warm_body); /* makes the entries */
  start_cache();
  setenv("SGL_KERNEL_JIT_PREBUILT_DIR", shipped.text, 1);
  in_child_with_fakes("fake_cuda.so", prebuilt_alone_body);
  char command[9000];
  snprintf(command, sizeof command, "cp -p '%s'/dsv3_* '%s'", shipped.text, folder.text);
  CU_ASSERT_EQUAL(system(command), 0);
  in_child_with_fakes("fake_cuda.so", own_before_prebuilt_body);
  snprintf(command, sizeof command, "rm '%s'/dsv3_* && for f in '%s'/dsv3_router*; do printf x >>$f; done", folder.text,
           shipped.text);
  CU_ASSERT_EQUAL(system(command), 0);
  in_child_with_fakes("fake_cuda.so", bad_prebuilt_body);
  in_child_with_fakes("fake_cuda.so", own_before_prebuilt_body); /* ... and used from then on */
  unsetenv("SGL_KERNEL_JIT_PREBUILT_DIR");
  remove_tree(shipped);
  remove_tree(folder);
}

/* --- the monitor --- */

static sgl_jit_late_compile seen;
static char seen_target[32], seen_text[512];
static int seen_count;

static void see(const sgl_jit_late_compile *compile, void *user) {
  CU_ASSERT_PTR_EQUAL(user, &seen);
  seen = *compile;
  snprintf(seen_target, sizeof seen_target, "%s", compile->target);
  snprintf(seen_text, sizeof seen_text, "%s", compile->text);
  seen_count++;
}

/* What is written to stderr between the two. */
static int saved_stderr, caught;

static void catch_stderr(void) {
  int ends[2];
  CU_ASSERT_EQUAL(pipe(ends), 0);
  saved_stderr = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  close(ends[1]);
  caught = ends[0];
}

static void caught_is(const char *text) {
  char have[2048];
  dup2(saved_stderr, STDERR_FILENO);
  close(saved_stderr);
  ssize_t size = read(caught, have, sizeof have - 1);
  have[size > 0 ? size : 0] = '\0';
  close(caught);
  UNIT_STRINGS(have, text);
}

#define LATE_ROUTER                                                                                                    \
  "sgl_kernel_jit: warning: the kernel dsv3_router_gemm:8x256:float32 for sm_90a (cuda:1) is compiled after the "      \
  "warm-up, which delays this call; before the start run: sgl-jit warm dsv3_router_gemm:8x256:float32"

CASE(monitor_warns) {
  struct gemm g = router_call(), f = fused_call(3, 256);
  unsetenv("SGL_KERNEL_JIT_MONITOR"); /* the default */
  catch_stderr();
  WORKS(f); /* before the warm-up is done, nothing is late */
  sgl_jit_warm_done();
  WORKS(f);
  f.device = 1;
  WORKS(f); /* loaded from the cache */
  caught_is("");
  g.device = 1;
  catch_stderr();
  WORKS(g);
  WORKS(g); /* is in memory now */
  caught_is(LATE_ROUTER "\n");
  CU_ASSERT_EQUAL(counters().late_compiles, 1);
  CU_ASSERT_EQUAL(counters().refused, 0);
}

CASE(monitor_hook) {
  struct gemm g = router_call(), f = fused_call(3, 256);
  setenv("SGL_KERNEL_JIT_MONITOR", "warn", 1);
  sgl_jit_set_late_compile_hook(see, &seen);
  sgl_jit_warm_done();
  g.device = 1;
  catch_stderr();
  WORKS(g);
  caught_is("");
  CU_ASSERT_EQUAL(seen_count, 1);
  CU_ASSERT_EQUAL(seen.spec.op, SGL_JIT_OP_DSV3_ROUTER_GEMM);
  CU_ASSERT(seen.spec.n == 8 && seen.spec.k == 256 && seen.spec.output_dtype == SGL_JIT_DTYPE_FLOAT32);
  CU_ASSERT_EQUAL(seen.device_index, 1);
  UNIT_STRINGS(seen_target, "sm_90a");
  UNIT_STRINGS(seen_text, LATE_ROUTER);
  WARM(&wide_spec, 0, SGL_JIT_OK, "");
  COMPILE(&router_spec, "sm_80", SGL_JIT_OK, ""); /* were asked for */
  CU_ASSERT_EQUAL(seen_count, 1);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 3);
  sgl_jit_set_late_compile_hook(NULL, NULL);
  catch_stderr();
  WORKS(f);
  caught_is(
      "sgl_kernel_jit: warning: the kernel dsv3_fused_a_gemm:16x256:bfloat16 for sm_90a (cuda:0) is compiled after "
      "the warm-up, which delays this call; before the start run: sgl-jit warm dsv3_fused_a_gemm:16x256:bfloat16\n");
  CU_ASSERT_EQUAL(seen_count, 1);
}

CASE(monitor_refuses) {
  struct gemm g = router_call();
  setenv("SGL_KERNEL_JIT_MONITOR", "error", 1);
  sgl_jit_set_late_compile_hook(see, &seen);
  sgl_jit_warm_done();
  catch_stderr();
  for (int i = 0; i < 2; i++)
    RETURNS(
        g, SGL_JIT_ERROR_REFUSED,
        "dsv3_router_gemm: the kernel dsv3_router_gemm:8x256:float32 for sm_90a (cuda:0) is in no cache and was not "
        "compiled, since the program is past its warm-up and the monitor is on error; before the start run: "
        "sgl-jit warm dsv3_router_gemm:8x256:float32");
  caught_is("");
  CU_ASSERT_EQUAL(seen_count, 0);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 0);
  CU_ASSERT_EQUAL(counters().refused, 2);
  CU_ASSERT_EQUAL(files_with(folder.text, "dsv3_", NULL), 0);
  COMPILE(&router_spec, "sm_90a", SGL_JIT_OK, ""); /* asked for; by another process it would be the same */
  WORKS(g);
  char said[256] = "";
  CU_ASSERT_EQUAL(sgl_jit_set_monitor((sgl_jit_monitor)3, said, sizeof said), SGL_JIT_ERROR_INVALID_ARGUMENT);
  UNIT_STRINGS(said, "sgl_jit_set_monitor: there is no monitor mode 3");
  CU_ASSERT_EQUAL(sgl_jit_set_monitor((sgl_jit_monitor)-1, NULL, 0), SGL_JIT_ERROR_INVALID_ARGUMENT);
  struct gemm f = fused_call(3, 256);
  CU_ASSERT_EQUAL(gemm_run(&f), SGL_JIT_ERROR_REFUSED);
  CU_ASSERT_EQUAL(sgl_jit_set_monitor(SGL_JIT_MONITOR_OFF, NULL, 0), SGL_JIT_OK);
  catch_stderr();
  WORKS(f);
  caught_is("");
  CU_ASSERT_EQUAL(seen_count, 0);
}

CASE(monitor_misspelt) {
  struct gemm g = router_call();
  setenv("SGL_KERNEL_JIT_MONITOR", "loud", 1);
  WORKS(g);
  g.n = 16;
  gemm_make(&g, true);
  WORKS(g); /* not yet read */
  sgl_jit_warm_done();
  WORKS(g);
  struct gemm f = fused_call(3, 256);
  for (int i = 0; i < 2; i++)
    RETURNS(f, SGL_JIT_ERROR_INVALID_ARGUMENT,
            "dsv3_fused_a_gemm: the environment variable SGL_KERNEL_JIT_MONITOR must be off, warn or error");
  CU_ASSERT_EQUAL(sgl_jit_set_monitor(SGL_JIT_MONITOR_OFF, NULL, 0), SGL_JIT_OK);
  WORKS(f);
}

CASE(monitor_off) {
  struct gemm g = router_call();
  setenv("SGL_KERNEL_JIT_MONITOR", "off", 1);
  sgl_jit_warm_done();
  catch_stderr();
  WORKS(g);
  caught_is("");
  CU_ASSERT_EQUAL(counters().late_compiles, 0);
}

/* --- counters --- */

static void counted_first_body(void) {
  struct gemm g = router_call();
  struct path entry;
  struct stat s;
  WORKS(g);
  sgl_jit_counters c = counters();
  CU_ASSERT_EQUAL(files_with(folder.text, "dsv3_", &entry), 1);
  CU_ASSERT_EQUAL(stat(entry.text, &s), 0);
  CU_ASSERT_EQUAL(c.cache_hits, 0);
  CU_ASSERT_EQUAL(c.cache_misses, 1);
  CU_ASSERT_EQUAL(c.compiles, 1);
  CU_ASSERT(c.compile_ns > 0 && c.compile_ns < UINT64_C(600000000000));
  CU_ASSERT_EQUAL(c.loads, 1);
  CU_ASSERT(c.load_ns > 0 && c.load_ns < UINT64_C(600000000000));
  CU_ASSERT_EQUAL(c.bytes_read, 0);
  CU_ASSERT_EQUAL(c.bytes_written, (uint64_t)s.st_size);
  CU_ASSERT_EQUAL(c.waits, 0);
  CU_ASSERT_EQUAL(c.wait_ns, 0);
  for (int i = 0; i < 5; i++)
    WORKS(g);
  sgl_jit_counters again = counters();
  CU_ASSERT(memcmp(&c, &again, sizeof c) == 0); /* what is in memory counts nothing */
}

static void counted_second_body(void) {
  struct gemm g = router_call();
  struct path entry;
  struct stat s;
  WORKS(g);
  sgl_jit_counters c = counters();
  CU_ASSERT_EQUAL(files_with(folder.text, "dsv3_", &entry), 1);
  CU_ASSERT_EQUAL(stat(entry.text, &s), 0);
  CU_ASSERT_EQUAL(c.cache_hits, 1);
  CU_ASSERT_EQUAL(c.cache_misses, 0);
  CU_ASSERT_EQUAL(c.compiles, 0);
  CU_ASSERT_EQUAL(c.compile_ns, 0);
  CU_ASSERT_EQUAL(c.loads, 1);
  CU_ASSERT_EQUAL(c.bytes_read, (uint64_t)s.st_size);
  CU_ASSERT_EQUAL(c.bytes_written, 0);
  CU_ASSERT_EQUAL(c.bad_entries, 0);
}

static void counted_damage_body(void) {
  struct gemm g = router_call();
  WORKS(g);
  CU_ASSERT_EQUAL(counters().bad_entries, 1);
  CU_ASSERT_EQUAL(counters().cache_misses, 1);
  CU_ASSERT_EQUAL(counters().compiles, 1);
}

static void counted(void) {
  start_cache();
  in_child_with_fakes("fake_cuda.so", counted_first_body);
  in_child_with_fakes("fake_cuda.so", counted_second_body);
  char command[4300];
  snprintf(command, sizeof command, "for f in '%s'/dsv3_*; do printf x >>$f; done", folder.text);
  CU_ASSERT_EQUAL(system(command), 0);
  in_child_with_fakes("fake_cuda.so", counted_damage_body);
  remove_tree(folder);
  unsigned char bytes[sizeof(sgl_jit_counters) + 16], small[8]; /* of a program that was built with another header */
  memset(bytes, 0xff, sizeof bytes);
  memset(small, 0xff, sizeof small);
  sgl_jit_get_counters((sgl_jit_counters *)(void *)bytes, sizeof bytes - 8);
  CU_ASSERT(bytes[sizeof bytes - 9] == 0 && bytes[sizeof bytes - 8] == 0xff);
  sgl_jit_get_counters((sgl_jit_counters *)(void *)small, 4);
  CU_ASSERT(small[3] == 0 && small[4] == 0xff);
}

#define TEST(name)                                                                                                     \
  { #name, name }
static const struct unit_test tests[] = {
    TEST(sixteen_processes),
    TEST(sixteen_processes_and_nvrtc),
    TEST(killed_while_compiling),
    TEST(failed_compile_lets_others_try),
    TEST(threads_wait_for_their_own_kernel),
    TEST(fork_while_compiling),
    TEST(full_disk),
    TEST(no_home_and_read_only_home),
    TEST(warm),
    TEST(wrong_specs),
    TEST(compile_without_driver),
    TEST(compile_needs_a_folder),
    TEST(prebuilt_folder),
    TEST(monitor_warns),
    TEST(monitor_hook),
    TEST(monitor_refuses),
    TEST(monitor_misspelt),
    TEST(monitor_off),
    TEST(counted),
};
UNIT_MAIN("jit/start", tests)
