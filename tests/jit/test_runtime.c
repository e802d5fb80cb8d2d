/* The CUDA backend on the fake driver and compiler: what is called and how often, what each failure gives, contexts,
 * capture, forks, threads, and where NVRTC is searched. Every case has a child of its own. */
#include "cases.h"
#include "jit/internal.h"
#include <errno.h>
#include <pthread.h>

/* --- what a call costs --- */

CASE(hot_path) {
  fakes.context(0, 1);
  struct gemm g = router_call();
  g.stream = &g;
  WORKS(g);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 1);
  UNIT_STRINGS(fakes.nvrtc->options,
               "--gpu-architecture=sm_90a --std=c++17 --minimal -DN=8 -DK=256 -DCLUSTER=4 -DWARPS=1 "
               "-DOUTPUT_F32=1 -DPDL=0 -DDOT_WARPS=1 -DROWS_1=2 -DROWS_2=2 -DTILE_16=16 -DDEPTH_16=1");
  CU_ASSERT_EQUAL(fakes.cuda->grid[0], 4); /* a cluster of four blocks shares K */
  CU_ASSERT_EQUAL(fakes.cuda->grid[1], 1);
  CU_ASSERT_EQUAL(fakes.cuda->block[0], 32);
  CU_ASSERT_PTR_EQUAL(fakes.cuda->stream, &g);
  for (int tokens = 1; tokens <= 3; tokens++) { /* every number of tokens: the context is looked at, and the launch */
    int all = fakes.count(""), launched = launches(), looked = fakes.count("cuCtxGetDevice");
    g.tokens = tokens;
    WORKS(g);
    CU_ASSERT_EQUAL(fakes.count("") - all, 2);
    CU_ASSERT_EQUAL(launches() - launched, 1);
    CU_ASSERT_EQUAL(fakes.count("cuCtxGetDevice") - looked, 1);
  }
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 1);
}

/* The device is told which lines leave the cache first: the weights, as far as its window reaches. */
static void streams(int window_bytes, size_t want) {
  fakes.cuda->window_bytes = window_bytes;
  struct gemm g = router_call();
  WORKS(g);
  CU_ASSERT_EQUAL(fakes.cuda->streamed_bytes, want);
  CU_ASSERT_PTR_EQUAL(fakes.cuda->streamed, want ? g.w.data : NULL);
}

CASE(weights_are_streamed) {
  streams(134217728, 8 * 256 * 2);
}

CASE(weights_beyond_the_window) {
  streams(1024, 1024);
}

CASE(no_window) {
  streams(0, 0);
}

CASE(attribute_set_once) {
  struct gemm g = fused_call(64, 7168);
  /* 4 warps x 5 units x (16 columns + 32 tokens) x 128 bytes, and 10 units with 16 tokens: more than 48 KiB */
  for (int i = 0; i < 3; i++)
    WORKS(g);
  CU_ASSERT_EQUAL(fakes.cuda->shared_bytes, 4 * 5 * 48 * 128);
  CU_ASSERT_EQUAL(fakes.count("cuKernelSetAttribute"), 2); /* a path each */
  CU_ASSERT_EQUAL(fakes.count("cuLibraryLoadData"), 1);
}

CASE(no_tokens) {
  struct gemm g = router_call();
  g.tokens = 0;
  RETURNS(g, SGL_JIT_OK, "");
  CU_ASSERT_EQUAL(fakes.count(""), 0);
}

CASE(keeps_errno) {
  struct gemm g = router_call();
  for (int i = 0; i < 2; i++) {
    errno = 4321;
    CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_OK);
    CU_ASSERT_EQUAL(errno, 4321);
  }
}

CASE(wrong_arguments_touch_no_driver) {
  struct gemm g = router_call();
  g.tokens = 65;
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
  CU_ASSERT_EQUAL(fakes.count(""), 0);
}

/* --- contexts --- */

static void *current(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *context = NULL;
  int (*get)(void **);
  *(void **)&get = dlsym(driver, "cuCtxGetCurrent");
  get(&context);
  return context;
}

CASE(context_left_as_found) {
  struct gemm g = router_call();
  void *own, *other;
  g.device = 1;
  WORKS(g); /* none is current */
  CU_ASSERT_PTR_NULL(current());
  other = fakes.context(0, 1); /* another device's */
  WORKS(g);
  CU_ASSERT_PTR_EQUAL(current(), other);
  CU_ASSERT_EQUAL(fakes.count("cuDevicePrimaryCtxRetain"), 1); /* remembered */
  CU_ASSERT_EQUAL(fakes.count("cuCtxPushCurrent"), 2);
  own = fakes.context(1, 1); /* one of the device that is not its primary */
  WORKS(g);
  CU_ASSERT_PTR_EQUAL(current(), own);
  CU_ASSERT_EQUAL(fakes.count("cuCtxPushCurrent"), 2);
  CU_ASSERT_EQUAL(fakes.count("cuLibraryLoadData"), 1); /* a library serves every context */
  fakes.cuda->launch_error = 700;                       /* after errors too */
  g.device = 0;
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_LAUNCH);
  CU_ASSERT_PTR_EQUAL(current(), own);
  fakes.cuda->load_error = 200;
  g.k = 512;
  CU_ASSERT_NOT_EQUAL(gemm_run(&g), SGL_JIT_OK);
  CU_ASSERT_PTR_EQUAL(current(), own);
  CU_ASSERT_EQUAL(fakes.count("cuCtxPushCurrent"), fakes.count("cuCtxPopCurrent"));
}

CASE(no_context_to_be_had) {
  struct gemm g = router_call();
  fakes.cuda->retain_error = 2;
  RETURNS(g, SGL_JIT_ERROR_OUT_OF_MEMORY,
          "dsv3_router_gemm: no context on the device: CUDA_ERROR_OUT_OF_MEMORY: as told by the fake driver");
  fakes.cuda->retain_error = 46;
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_NO_DRIVER);
  fakes.cuda->retain_error = 0;
  WORKS(g);
}

CASE(two_devices) {
  struct gemm g = fused_call(64, 7168);
  WORKS(g);
  g.device = 1;
  WORKS(g);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 1);               /* the second one found it in the cache */
  CU_ASSERT_EQUAL(fakes.count("cuKernelSetAttribute"), 4); /* two paths on each */
  g.device = 2;
  RETURNS(g, SGL_JIT_ERROR_INVALID_ARGUMENT, "dsv3_fused_a_gemm: there is no cuda:2, the driver has 2 devices");
  g.device = -1;
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_INVALID_ARGUMENT);
}

static void modules_body(void) {
  struct gemm g = fused_call(64, 7168);
  void *first = fakes.context(0, 1);
  WORKS(g);
  WORKS(g);
  CU_ASSERT_EQUAL(fakes.count("cuModuleLoadData"), 1);
  CU_ASSERT_EQUAL(fakes.count("cuFuncSetAttribute"), 2);
  fakes.context(0, 1); /* another context needs a module of its own */
  WORKS(g);
  WORKS(g);
  CU_ASSERT_EQUAL(fakes.count("cuModuleLoadData"), 2);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 1);
  CU_ASSERT_PTR_NOT_EQUAL(current(), first);
  fakes.cuda->load_error = 200;
  g.k = 256;
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_LOAD);
}

/* More contexts than the table has buckets: some share one. */
static void many_contexts_body(void) {
  enum { CONTEXTS = 70 };
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *contexts[CONTEXTS], *popped;
  int (*push)(void *), (*pop)(void **);
  *(void **)&push = dlsym(driver, "cuCtxPushCurrent_v2");
  *(void **)&pop = dlsym(driver, "cuCtxPopCurrent_v2");
  struct gemm g = router_call();
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < CONTEXTS; i++) {
      if (round == 0)
        contexts[i] = fakes.context(0, 0);
      push(contexts[i]);
      WORKS(g);
      pop(&popped);
    }
  CU_ASSERT_EQUAL(fakes.count("cuModuleLoadData"), CONTEXTS);
}

static void many_contexts(void) {
  run_case("fake_cuda_11.so", many_contexts_body);
}

/* So many devices that some share a bucket of the table. */
CASE(many_devices) {
  struct gemm g = router_call();
  fakes.cuda->device_count = FAKE_DEVICES;
  for (int round = 0; round < 2; round++)
    for (g.device = 0; g.device < FAKE_DEVICES; g.device++)
      WORKS(g);
  CU_ASSERT_EQUAL(fakes.count("cuLibraryLoadData"), FAKE_DEVICES);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 1);
}

static void modules_of_cuda_11(void) {
  run_case("fake_cuda_11.so", modules_body);
}

/* --- the driver's failures --- */

CASE(no_device) {
  struct gemm g = router_call();
  fakes.cuda->init_error = 100;
  RETURNS(g, SGL_JIT_ERROR_NO_DRIVER,
          "dsv3_router_gemm: cuInit failed with CUDA_ERROR_NO_DEVICE: as told by the fake driver");
  fakes.cuda->hide_error_names = 1;
  RETURNS(g, SGL_JIT_ERROR_NO_DRIVER, "dsv3_router_gemm: cuInit failed with CUDA error 100");
  fakes.cuda->init_error = 0;
  fakes.cuda->device_count = 0;
  RETURNS(g, SGL_JIT_ERROR_NO_DRIVER, "dsv3_router_gemm: the CUDA driver has no device (see CUDA_VISIBLE_DEVICES)");
  fakes.cuda->device_count = 1; /* nothing of that is remembered */
  WORKS(g);
}

CASE(old_device) {
  struct gemm g = router_call();
  fakes.cuda->major = 7;
  fakes.cuda->minor = 5;
  RETURNS(g, SGL_JIT_ERROR_UNSUPPORTED, "dsv3_router_gemm: cuda:0 has compute capability 7.5, this needs 8.0 or newer");
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 0);
}

CASE(load_refused) {
  struct gemm g = router_call();
  fakes.cuda->load_error = 218;
  for (int i = 0; i < 2; i++)
    RETURNS(
        g, SGL_JIT_ERROR_LOAD,
        "dsv3_router_gemm: the driver refused the compiled kernel: CUDA_ERROR_SOMETHING: as told by the fake driver");
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 1); /* the second time it was known */
  static const int unfit[] = {200, 209, 222};
  for (int i = 0; i < 3; i++) { /* the others of the kind, with kernels of their own */
    g.n = 16 + 8 * i;
    fakes.cuda->load_error = unfit[i];
    CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_LOAD);
    fakes.cuda->load_error = 0;
    CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_LOAD);
  }
  g.n = 8;
  fakes.cuda->function_error = 500;
  g.k = 512;
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_LOAD);
  CU_ASSERT_EQUAL(fakes.count("cuLibraryUnload"), 1);
  fakes.cuda->function_error = 0;
  fakes.cuda->attribute_error = 1;
  struct gemm f = fused_call(64, 7168);
  CU_ASSERT_EQUAL(gemm_run(&f), SGL_JIT_ERROR_LOAD);
  CU_ASSERT_EQUAL(fakes.count("cuLibraryUnload"), 2);
  CU_ASSERT_EQUAL(launches(), 0);
}

/* What is not the image's fault is not remembered: the faults of earlier work, and whatever else may pass. */
CASE(load_met_passing_error) {
  static const struct {
    int error, status;
  } passing[] = {
      {700, SGL_JIT_ERROR_LAUNCH}, {719, SGL_JIT_ERROR_LAUNCH}, {221, SGL_JIT_ERROR_LOAD}, {802, SGL_JIT_ERROR_LOAD}};
  struct gemm g = router_call();
  fakes.cuda->load_error = 700;
  RETURNS(g, SGL_JIT_ERROR_LAUNCH,
          "dsv3_router_gemm: an earlier error surfaced as the kernel was loaded: CUDA_ERROR_SOMETHING: as told by the "
          "fake driver");
  for (int i = 0; i < 4; i++) {
    fakes.cuda->load_error = passing[i].error;
    CU_ASSERT_EQUAL(gemm_run(&g), passing[i].status);
  }
  fakes.cuda->load_error = 0;
  WORKS(g);
}

CASE(load_out_of_memory) {
  struct gemm g = router_call();
  fakes.cuda->load_error = 2;
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_OUT_OF_MEMORY);
  fakes.cuda->load_error = 0; /* may be better now */
  WORKS(g);
}

CASE(launch_refused) {
  struct gemm g = router_call();
  fakes.cuda->launch_error = 700;
  RETURNS(
      g, SGL_JIT_ERROR_LAUNCH,
      "dsv3_router_gemm: the driver refused the launch, or an earlier error surfaced: CUDA_ERROR_SOMETHING: as told "
      "by the fake driver");
  fakes.cuda->launch_error = 2;
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_OUT_OF_MEMORY);
  fakes.cuda->launch_error = 0;
  WORKS(g);
}

CASE(capture) {
  struct gemm g = router_call();
  fakes.cuda->refuse_load = 1; /* as in a capture of the strict kind */
  WORKS(g);
  g.k = 512;
  fakes.cuda->refuse_load = 2; /* as an old driver */
  RETURNS(
      g, SGL_JIT_ERROR_CAPTURE,
      "dsv3_router_gemm: the first use of this shape came during a stream capture, where this driver loads no code "
      "(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: as told by the fake driver); call it once with this shape before the "
      "capture");
  /* The thread's own mode is back: as strict as before. */
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  int (*exchange)(int *), mode = 0;
  *(void **)&exchange = dlsym(driver, "cuThreadExchangeStreamCaptureMode");
  exchange(&mode);
  CU_ASSERT_EQUAL(mode, 0);
  fakes.cuda->refuse_load = 0;
  struct gemm later = {.f32 = true, .cuda = true, .tokens = 3, .n = 8, .k = 512};
  gemm_make(&later, true);
  WORKS(later);
}

CASE(little_shared_memory) {
  struct gemm g = fused_call(8, 7168);
  fakes.cuda->shared_optin = 1000;
  for (int i = 0; i < 2; i++)
    RETURNS(
        g, SGL_JIT_ERROR_UNSUPPORTED,
        "dsv3_fused_a_gemm: 1000 bytes of shared memory, what the device gives a block, are too few for this shape");
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 0);
}

/* --- the compiler's failures --- */

CASE(compile_error) {
  struct gemm g = router_call();
  fakes.nvrtc->compile_error = 6;
  fakes.nvrtc->log = "dsv3_router_gemm(3): warning: this is nothing\ndsv3_router_gemm(9): error: this is it\nmore\n";
  for (int i = 0; i < 2; i++)
    RETURNS(
        g, SGL_JIT_ERROR_COMPILE,
        "dsv3_router_gemm: NVRTC 13.0 refused the kernel (NVRTC_ERROR_COMPILATION): dsv3_router_gemm(9): error: this "
        "is it");
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 1); /* the second time it was known */
  struct gemm f = fused_call(1, 256);
  fakes.nvrtc->compile_error = 1;
  RETURNS(f, SGL_JIT_ERROR_OUT_OF_MEMORY, "dsv3_fused_a_gemm: NVRTC ran out of memory");
  fakes.nvrtc->compile_error = 7;
  RETURNS(f, SGL_JIT_ERROR_NO_COMPILER, "dsv3_fused_a_gemm: NVRTC 13.0 found no libnvrtc-builtins.so.13.0 beside it");
  fakes.nvrtc->compile_error = 0;
  WORKS(f);
}

CASE(no_compiler) {
  struct gemm g = router_call();
  struct path good = path_in(own_folder(), "fake_nvrtc.so");
  setenv("SGL_KERNEL_JIT_NVRTC", "/nonexistent/libnvrtc.so", 1);
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_NO_COMPILER);
  UNIT_CONTAINS(g.message, "dsv3_router_gemm: SGL_KERNEL_JIT_NVRTC names no usable library: /nonexistent/libnvrtc.so");
  setenv("SGL_KERNEL_JIT_NVRTC", path_in(own_folder(), "fake_cuda.so").text, 1);
  RETURNS(g, SGL_JIT_ERROR_NO_COMPILER,
          "dsv3_router_gemm: NVRTC has no function nvrtcVersion: it is too old, 12.1 is needed");
  setenv("SGL_KERNEL_JIT_NVRTC", good.text, 1);
  fakes.nvrtc->major = 11;
  fakes.nvrtc->minor = 8;
  RETURNS(g, SGL_JIT_ERROR_NO_COMPILER, "dsv3_router_gemm: NVRTC 11.8 is too old, 12.1 is needed");
  fakes.nvrtc->major = 12; /* installed meanwhile */
  fakes.nvrtc->minor = 0;
  RETURNS(g, SGL_JIT_ERROR_NO_COMPILER, "dsv3_router_gemm: NVRTC 12.0 is too old, 12.1 is needed");
  fakes.nvrtc->minor = 1;
  WORKS(g);
}

CASE(targets) {
  static const struct {
    int major, minor, archs[4], archs_n;
    const char *target;
  } devices[] = {{9, 0, {80, 90}, 2, "sm_90a "},
                 {8, 9, {80, 86, 90}, 3, "sm_86 "},
                 {12, 1, {90, 100, 120}, 3, "sm_120 "},
                 {10, 3, {90, 100, 120}, 3, "sm_100 "},
                 {9, 0, {75, 80, 89, 100}, 4, "compute_89 "},
                 {8, 0, {90, 100}, 2, "sm_80 "}};
  for (int i = 0; i < 6; i++) { /* each with a process and a cache of its own: a device's facts are read once */
    pid_t pid = fork();
    if (pid == 0) {
      setenv("SGL_KERNEL_JIT_CACHE_DIR", path_in(folder.text, devices[i].target).text, 1);
      fakes.cuda->major = devices[i].major;
      fakes.cuda->minor = devices[i].minor;
      memcpy(fakes.nvrtc->archs, devices[i].archs, sizeof devices[i].archs);
      fakes.nvrtc->archs_n = devices[i].archs_n;
      struct gemm g = router_call();
      bool good =
          gemm_run(&g) == SGL_JIT_OK && gemm_wrong(&g, 1e-6) == 0 && strstr(fakes.nvrtc->options, devices[i].target);
      if (!good)
        fprintf(stderr, "  %s: %s (%s)\n", devices[i].target, fakes.nvrtc->options, g.message);
      _exit(good ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CU_ASSERT_EQUAL(status, 0);
  }
}

/* --- the cache --- */

static void first_process(void) {
  struct gemm g = router_call();
  WORKS(g);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 1);
}

static void second_process(void) {
  struct gemm g = router_call();
  WORKS(g);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 0);
  CU_ASSERT_EQUAL(fakes.nvrtc->asked, 0); /* a warm start opens no compiler */
}

static void process_without_compiler(void) {
  struct gemm g = router_call();
  setenv("SGL_KERNEL_JIT_NVRTC", "/nonexistent", 1);
  WORKS(g);
  g.k = 512; /* was never compiled */
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_NO_COMPILER);
}

static void process_with_new_compiler(void) {
  struct gemm g = router_call();
  fakes.nvrtc->minor = 1;
  WORKS(g);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 0); /* what the older one compiled is as good */
}

/* A device that the compiler does not know: the kernel for an older one is cached, and found. */
static void first_process_on_new_device(void) {
  struct gemm g = router_call();
  fakes.cuda->major = 12;
  fakes.cuda->minor = 1;
  WORKS(g);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 1);
}

static void second_process_on_new_device(void) {
  struct gemm g = router_call();
  fakes.cuda->major = 12;
  fakes.cuda->minor = 1;
  WORKS(g);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 0);
}

/* Its own target has no entry yet: a compiler that knows it is asked. */
static void new_device_and_new_compiler(void) {
  struct gemm g = router_call();
  fakes.cuda->major = 12;
  fakes.cuda->minor = 1;
  fakes.nvrtc->archs[fakes.nvrtc->archs_n++] = 121;
  WORKS(g);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 1);
  UNIT_CONTAINS(fakes.nvrtc->options, "=sm_121a ");
}

static void process_on_other_device(void) {
  struct gemm g = router_call();
  fakes.cuda->major = 10;
  WORKS(g);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 1);
}

static void damage_body(void) {
  /* Damaged files are compiled anew, and replaced. */
  char command[4300];
  snprintf(command, sizeof command,
           "for f in %s/*; do printf x | dd of=$f bs=1 seek=100 conv=notrunc 2>/dev/null; done", folder.text);
  CU_ASSERT_EQUAL(system(command), 0);
}

static void cache_across_processes(void) {
  start_cache();
  in_child_with_fakes("fake_cuda.so", first_process);
  in_child_with_fakes("fake_cuda.so", second_process);
  in_child_with_fakes("fake_cuda.so", process_without_compiler);
  in_child_with_fakes("fake_cuda.so", process_with_new_compiler);
  in_child_with_fakes("fake_cuda.so", process_on_other_device);
  in_child_with_fakes("fake_cuda.so", first_process_on_new_device);
  in_child_with_fakes("fake_cuda.so", second_process_on_new_device);
  in_child_with_fakes("fake_cuda.so", new_device_and_new_compiler);
  damage_body();
  in_child_with_fakes("fake_cuda.so", first_process);
  in_child_with_fakes("fake_cuda.so", second_process);
  remove_tree(folder);
  setenv("SGL_KERNEL_JIT_CACHE_DIR", "/proc/none", 1); /* no cache at all: compiled by each */
  in_child_with_fakes("fake_cuda.so", first_process);
  in_child_with_fakes("fake_cuda.so", first_process);
}

/* The only entry of the cache, or none. */
static bool only_entry(struct path *entry) {
  return files_with(folder.text, "dsv3_", entry) == 1;
}

CASE(refused_is_not_kept) {
  struct gemm g = router_call();
  struct path entry;
  fakes.cuda->load_error = 209;
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_LOAD);
  CU_ASSERT(!only_entry(&entry));
}

static void process_with_refused_entry(void) {
  struct gemm g = router_call();
  WORKS(g);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 1);
  CU_ASSERT_EQUAL(fakes.count("cuLibraryLoadData"), 3); /* the cached one before and under the lock, the new one */
}

/* Without a compiler it is no kernel, and that is not remembered. */
static void process_with_refused_entry_alone(void) {
  struct gemm g = router_call();
  struct path good = {""};
  snprintf(good.text, sizeof good.text, "%s", getenv("SGL_KERNEL_JIT_NVRTC"));
  setenv("SGL_KERNEL_JIT_NVRTC", "/nonexistent", 1);
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_NO_COMPILER);
  setenv("SGL_KERNEL_JIT_NVRTC", good.text, 1);
  fakes.nvrtc->compile_error = 1; /* neither is this, though a load was refused before it */
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_OUT_OF_MEMORY);
  CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_OUT_OF_MEMORY);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 2);
}

/* A whole entry that the driver refuses, as after a change of drivers, is compiled anew and replaced. */
static void cached_kernel_refused(void) {
  start_cache();
  in_child_with_fakes("fake_cuda.so", first_process);
  struct path entry;
  char content[2048] = "";
  CU_ASSERT_FATAL(only_entry(&entry));
  FILE *f = fopen(entry.text, "rb");
  CU_ASSERT(fread(content, 1, sizeof content - 1, f) > 1000);
  fclose(f);
  char *key = content + 24, *end = strstr(key, " -DDEPTH_16=1\n");
  CU_ASSERT_FATAL(end != NULL);
  end[14] = '\0';
  char text[] = "rubbish";
  struct jit_image rubbish = {text, 7};
  jit_cache_write(key, &rubbish, (struct jit_message){NULL, 0, NULL});
  CU_ASSERT(only_entry(&entry)); /* the same one */
  in_child_with_fakes("fake_cuda.so", process_with_refused_entry_alone);
  in_child_with_fakes("fake_cuda.so", process_with_refused_entry);
  in_child_with_fakes("fake_cuda.so", second_process);
  remove_tree(folder);
}

/* --- forks and threads --- */

CASE(after_fork) {
  struct gemm g = router_call();
  pid_t pid = fork(); /* before the first use: as any process */
  if (pid == 0)
    _exit(gemm_run(&g) == SGL_JIT_OK ? 0 : 1);
  int status = -1;
  waitpid(pid, &status, 0);
  CU_ASSERT_EQUAL(status, 0);
  WORKS(g);
  pid = fork();
  if (pid == 0) {
    CU_ASSERT_EQUAL(gemm_run(&g), SGL_JIT_ERROR_NO_DRIVER);
    _exit(strcmp(g.message, "dsv3_router_gemm: this process was forked from one that had used CUDA, and CUDA does not "
                            "work after a fork; start workers with spawn, or fork before the first use") == 0
              ? 0
              : 1);
  }
  waitpid(pid, &status, 0);
  CU_ASSERT_EQUAL(status, 0);
  WORKS(g);
}

struct worker {
  pthread_t thread;
  pthread_barrier_t *barrier;
  int number, failures;
};

static void *work(void *argument) {
  struct worker *w = argument;
  for (int shape = 0; shape < 4; shape++) {
    struct gemm g = shape < 2 ? router_call() : fused_call(1 + w->number, 256);
    g.device = shape % 2;
    pthread_barrier_wait(w->barrier);
    for (int i = 0; i < 3; i++)
      w->failures += gemm_run(&g) != SGL_JIT_OK || gemm_wrong(&g, 1e-6) != 0;
    gemm_free(&g);
  }
  return NULL;
}

CASE(eight_threads) {
  struct worker workers[8];
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, 8);
  for (int i = 0; i < 8; i++) {
    workers[i] = (struct worker){.barrier = &barrier, .number = i};
    pthread_create(&workers[i].thread, NULL, work, &workers[i]);
  }
  for (int i = 0; i < 8; i++) {
    pthread_join(workers[i].thread, NULL);
    CU_ASSERT_EQUAL(workers[i].failures, 0);
  }
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 2);
  CU_ASSERT_EQUAL(fakes.count("cuInit"), 1);
  CU_ASSERT_EQUAL(fakes.count("cuDevicePrimaryCtxRetain"), 2);
  CU_ASSERT_EQUAL(fakes.count("cuLibraryLoadData"), 4);
  CU_ASSERT_EQUAL(launches(), 8 * 4 * 3);
}

/* --- where things are searched --- */

static bool copy_fake(const char *fake, const char *where, const char *name) {
  char command[16500];
  snprintf(command, sizeof command, "mkdir -p '%s' && cp '%s/%s' '%s/%s'", where, own_folder(), fake, where, name);
  return system(command) == 0;
}

/* The loaded copy of the fake compiler that the library used, or NULL. */
static struct fake_nvrtc *copy_at(const char *where, const char *name) {
  void *library = dlopen(path_in(where, name).text, RTLD_NOW | RTLD_NOLOAD);
  return library ? dlsym(library, "fake_nvrtc") : NULL;
}

static void loaded_body(void) {
  unsetenv("SGL_KERNEL_JIT_NVRTC"); /* but the fake is loaded, and is called libnvrtc.so.13 */
  struct gemm g = router_call();
  WORKS(g);
  CU_ASSERT_EQUAL(fakes.nvrtc->compiled, 1);
}

static void finds_loaded_nvrtc(void) {
  run_case("fake_cuda.so", loaded_body);
}

static void *first_call(void *call) {
  return gemm_run(call) == SGL_JIT_OK ? NULL : call;
}

/* A thread is loading the driver, and holds its lock, when another one forks: the child gets an error, and does not
 * wait.
 */
static int fork_during_load(void) {
  int to_driver[2], from_driver[2], status = -1;
  char text[32], byte = 0;
  pthread_t thread;
  void *failed = NULL;
  struct gemm g = router_call(), mine = router_call();
  if (pipe(to_driver) != 0 || pipe(from_driver) != 0)
    return 20;
  snprintf(text, sizeof text, "%d %d", to_driver[0], from_driver[1]);
  setenv("SGL_TEST_HOLD_LOAD", text, 1);
  if (pthread_create(&thread, NULL, first_call, &g) != 0 || read(from_driver[0], &byte, 1) != 1)
    return 21;
  pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    _exit(gemm_run(&mine) == SGL_JIT_ERROR_NO_DRIVER && strstr(mine.message, "was forked from one") ? 0 : 1);
  }
  waitpid(pid, &status, 0);
  if (write(to_driver[1], &byte, 1) != 1 || pthread_join(thread, &failed) != 0)
    return 22;
  return status != 0 ? 23 : failed ? 24 : 0;
}

/* Run by itself in a new process, with the fake driver in LD_LIBRARY_PATH and nothing loaded: argument 1 says what. */
static int searching_process(const char *what) {
  struct path root = {""};
  if (strcmp(what, "fork") == 0)
    return fork_during_load();
  snprintf(root.text, sizeof root.text, "%s", getenv("SGL_TEST_ROOT"));
  struct path where = path_in(root.text, strcmp(what, "wheel12") == 0   ? "nvidia/cuda_nvrtc/lib"
                                         : strcmp(what, "wheel13") == 0 ? "nvidia/cu13/lib"
                                                                        : "toolkit/lib64");
  const char *name = strcmp(what, "wheel12") == 0 ? "libnvrtc.so.12" : "libnvrtc.so.13";
  if (strncmp(what, "wheel", 5) == 0) { /* a CUDA runtime is loaded from a wheel, as torch does */
    struct path runtime = path_in(root.text, strcmp(what, "wheel12") == 0 ? "nvidia/cuda_runtime/lib/libcudart.so.12"
                                                                          : "nvidia/cu13/lib/libcudart.so.13");
    if (!dlopen(runtime.text, RTLD_NOW)) {
      fprintf(stderr, "  %s: %s\n", what, dlerror());
      return 10;
    }
  }
  struct gemm g = router_call();
  sgl_jit_status status = gemm_run(&g);
  if (strcmp(what, "driver") == 0)
    return status == SGL_JIT_ERROR_NO_DRIVER && strncmp(g.message, "dsv3_router_gemm: no CUDA driver: ", 34) == 0 ? 0
                                                                                                                  : 11;
  struct fake_nvrtc *used = copy_at(where.text, name);
  if (status != SGL_JIT_OK || !used || used->compiled != 1) {
    fprintf(stderr, "  %s: status %d, the copy was %s: %s\n", what, (int)status,
            !used            ? "not loaded"
            : used->compiled ? "used"
                             : "loaded and not used",
            g.message);
    return 13;
  }
  return 0;
}

static int search(const char *what, const char *variable, const char *value) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    struct path libraries = path_in(folder.text, strcmp(what, "driver") == 0 ? "junk" : "libraries");
    setenv("LD_LIBRARY_PATH", libraries.text, 1);
    setenv("SGL_TEST_ROOT", folder.text, 1);
    unsetenv("SGL_KERNEL_JIT_NVRTC");
    unsetenv("CUDA_HOME");
    unsetenv("CUDA_PATH");
    if (variable)
      setenv(variable, value, 1);
    setenv("SGL_TEST_SEARCH", what, 1);
    execl("/proc/self/exe", "test_runtime", (char *)NULL);
    _exit(99);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  if (status != 0)
    fprintf(stderr, "  %s: the child ended with %s %d\n", what, WIFEXITED(status) ? "status" : "signal",
            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void search_order(void) {
  start_cache();
  setenv("SGL_KERNEL_JIT_CACHE_DIR", path_in(folder.text, "cache").text, 1);
  use_store();
  char command[8400], remove_cache[4300];
  snprintf(remove_cache, sizeof remove_cache, "rm -r '%s/cache'", folder.text);
  /* Files that are no libraries hide the real NVRTC and the real driver of this machine from a search by name. */
  snprintf(command, sizeof command,
           "cd '%s' && mkdir junk libraries && cp '%s/fake_cuda.so' libraries/libcuda.so.1 && "
           "for i in junk/libcuda.so.1 libraries/libnvrtc.so.12 libraries/libnvrtc.so.13; do echo no library >$i; done",
           folder.text, own_folder());
  CU_ASSERT_EQUAL_FATAL(system(command), 0);
  CU_ASSERT(copy_fake("fake_cuda.so", path_in(folder.text, "nvidia/cuda_runtime/lib").text, "libcudart.so.12"));
  CU_ASSERT(copy_fake("fake_nvrtc.so", path_in(folder.text, "nvidia/cuda_nvrtc/lib").text, "libnvrtc.so.12"));
  CU_ASSERT(copy_fake("fake_cuda.so", path_in(folder.text, "nvidia/cu13/lib").text, "libcudart.so.13"));
  CU_ASSERT(copy_fake("fake_nvrtc.so", path_in(folder.text, "nvidia/cu13/lib").text, "libnvrtc.so.13"));
  CU_ASSERT(copy_fake("fake_nvrtc.so", path_in(folder.text, "toolkit/lib64").text, "libnvrtc.so.13"));
  CU_ASSERT_EQUAL(search("driver", NULL, NULL), 0);
  CU_ASSERT_EQUAL(search("fork", "SGL_KERNEL_JIT_NVRTC", path_in(own_folder(), "fake_nvrtc.so").text), 0);
  CU_ASSERT_EQUAL(system(remove_cache), 0);
  CU_ASSERT_EQUAL(search("wheel12", NULL, NULL), 0);
  CU_ASSERT_EQUAL(system(remove_cache), 0);
  CU_ASSERT_EQUAL(search("wheel13", NULL, NULL), 0);
  CU_ASSERT_EQUAL(system(remove_cache), 0);
  CU_ASSERT_EQUAL(search("home", "CUDA_HOME", path_in(folder.text, "toolkit").text), 0);
  CU_ASSERT_EQUAL(system(remove_cache), 0);
  CU_ASSERT_EQUAL(search("home", "CUDA_PATH", path_in(folder.text, "toolkit").text), 0);
  remove_tree(folder);
}

static const struct unit_test tests[] = {
    {"hot_path", hot_path},
    {"weights_are_streamed", weights_are_streamed},
    {"weights_beyond_the_window", weights_beyond_the_window},
    {"no_window", no_window},
    {"attribute_set_once", attribute_set_once},
    {"no_tokens", no_tokens},
    {"keeps_errno", keeps_errno},
    {"wrong_arguments_touch_no_driver", wrong_arguments_touch_no_driver},
    {"context_left_as_found", context_left_as_found},
    {"no_context_to_be_had", no_context_to_be_had},
    {"two_devices", two_devices},
    {"many_devices", many_devices},
    {"modules_of_cuda_11", modules_of_cuda_11},
    {"many_contexts", many_contexts},
    {"no_device", no_device},
    {"old_device", old_device},
    {"load_refused", load_refused},
    {"load_met_passing_error", load_met_passing_error},
    {"load_out_of_memory", load_out_of_memory},
    {"launch_refused", launch_refused},
    {"capture", capture},
    {"little_shared_memory", little_shared_memory},
    {"compile_error", compile_error},
    {"no_compiler", no_compiler},
    {"targets", targets},
    {"cache_across_processes", cache_across_processes},
    {"refused_is_not_kept", refused_is_not_kept},
    {"cached_kernel_refused", cached_kernel_refused},
    {"after_fork", after_fork},
    {"eight_threads", eight_threads},
    {"finds_loaded_nvrtc", finds_loaded_nvrtc},
    {"search_order", search_order},
};

int main(int argc, char **argv) {
  if (getenv("SGL_TEST_SEARCH")) /* _exit: what a driver holds until the process ends is no leak */
    _exit(searching_process(getenv("SGL_TEST_SEARCH")));
  return unit_main("jit/runtime", tests, sizeof tests / sizeof tests[0], argc, argv);
}
