/* Warnings: once for each name and call site, with the symbol, the replacement and the caller. */
#include "shim/warn.h"

#include "tests/shim/world.h"

#include <errno.h>
#include <pthread.h>

static struct world_operands operands;

/* Two call sites of the C++ function; the addition keeps the calls from becoming jumps. */
__attribute__((noinline, visibility("default"))) int first_site(void);
__attribute__((noinline, visibility("default"))) int second_site(void);
static volatile int after;
int first_site(void) {
  world_cxx_router(&operands.tensor[0], &operands.tensor[1], &operands.tensor[2]);
  return ++after;
}
int second_site(void) {
  world_cxx_router(&operands.tensor[0], &operands.tensor[1], &operands.tensor[2]);
  return ++after;
}
static void call_first(void *unused) {
  (void)unused;
  first_site();
}
static void call_second(void *unused) {
  (void)unused;
  second_site();
}
static void begin(void) {
  static const char *const ranks[] = {
      "RANK",          "SLURM_PROCID",        "OMPI_COMM_WORLD_RANK",       "PMIX_RANK",
      "PMI_RANK",      "LOCAL_RANK",          "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
      "SLURM_LOCALID", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK"};
  for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++)
    unsetenv(ranks[i]);
  EXPECT(world_torch("fake_torch") != NULL);
  EXPECT(sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0) == SGL_JIT_OK);
  world_router(&operands);
}

static void prints(void) {
  begin();
  const char *text = world_stderr(call_first, NULL);
  EXPECT(world_lines(text) == 1);
  EXPECT_CONTAINS(text, "sgl-kernel-compat: warning: the C++ function dsv3_router_gemm is deprecated");
  EXPECT_CONTAINS(text, "0.4.5");
  EXPECT_CONTAINS(text, "use sgl_kernel_jit::dsv3_router_gemm");
  EXPECT_CONTAINS(text, "called from test_warn+0x");
  EXPECT_CONTAINS(text, "(first_site+0x");
  EXPECT(world_router_done(&operands));
  EXPECT(world_stderr(call_first, NULL)[0] == '\0'); /* the same site */
  text = world_stderr(call_second, NULL);
  EXPECT(world_lines(text) == 1);
  EXPECT_CONTAINS(text, "(second_site+0x");
  EXPECT(world_stderr(call_second, NULL)[0] == '\0');
}
static void once(void) {
  world_child(prints);
}

/* addr2line finds the line of the call from what the warning says. */
static void names_the_line(void) {
  begin();
  const char *text = world_stderr(call_first, NULL);
  unsigned long offset = 0;
  const char *at = strstr(text, "test_warn+0x");
  EXPECT(at && sscanf(at, "test_warn+0x%lx", &offset) == 1);
  Dl_info info;
  EXPECT(dladdr((void *)first_site, &info) != 0);
  unsigned long start = (unsigned long)((char *)first_site - (char *)info.dli_fbase);
  EXPECT(offset > start && offset < start + 200);
}
static void caller(void) {
  world_child(names_the_line);
}

static void environment_off(void) {
  setenv("SGL_KERNEL_COMPAT_WARN", "off", 1);
  begin();
  EXPECT(world_stderr(call_first, NULL)[0] == '\0');
  EXPECT(world_router_done(&operands));
  EXPECT(sgl_compat_set_warnings(SGL_COMPAT_WARNINGS_ONCE, NULL, 0) == SGL_COMPAT_OK);
  EXPECT(world_lines(world_stderr(call_first, NULL)) == 1);
}
static void environment_wrong(void) {
  setenv("SGL_KERNEL_COMPAT_WARN", "loud", 1);
  begin();
  const char *text = world_stderr(call_first, NULL);
  EXPECT(world_lines(text) == 2);
  EXPECT_CONTAINS(text, "SGL_KERNEL_COMPAT_WARN=loud");
  EXPECT_CONTAINS(text, "dsv3_router_gemm");
  EXPECT(world_stderr(call_first, NULL)[0] == '\0');
}
static void environment_once(void) {
  setenv("SGL_KERNEL_COMPAT_WARN", "once", 1);
  begin();
  EXPECT(world_lines(world_stderr(call_first, NULL)) == 1);
}
static void api_beats_environment(void) {
  setenv("SGL_KERNEL_COMPAT_WARN", "once", 1);
  EXPECT(sgl_compat_set_warnings(SGL_COMPAT_WARNINGS_OFF, NULL, 0) == SGL_COMPAT_OK);
  begin();
  EXPECT(world_stderr(call_first, NULL)[0] == '\0');
  char message[200];
  EXPECT(sgl_compat_set_warnings((sgl_compat_warnings)7, message, sizeof message) == SGL_COMPAT_ERROR_INVALID_ARGUMENT);
  EXPECT_CONTAINS(message, "7");
  EXPECT(world_stderr(call_second, NULL)[0] == '\0'); /* unchanged */
}
static void one_of_many(void) {
  begin();
  setenv("RANK", "127", 1);
  EXPECT(world_stderr(call_first, NULL)[0] == '\0');
  EXPECT(world_router_done(&operands));
  unsetenv("RANK");
  setenv("SLURM_PROCID", "1", 1);
  EXPECT(world_stderr(call_second, NULL)[0] == '\0');
}
static void one_of_a_node(void) {
  begin();
  setenv("LOCAL_RANK", "1", 1); /* nobody has told the number in the job */
  EXPECT(world_stderr(call_first, NULL)[0] == '\0');
  setenv("PMIX_RANK", "0", 1);
  EXPECT(world_lines(world_stderr(call_second, NULL)) == 1);
}
static void first_of_many(void) {
  begin();
  setenv("RANK", "0", 1);
  setenv("SLURM_PROCID", "1", 1); /* the job's own number goes first */
  EXPECT(world_lines(world_stderr(call_second, NULL)) == 1);
}
static void settings(void) {
  world_child(one_of_many);
  world_child(one_of_a_node);
  world_child(first_of_many);
  world_child(environment_off);
  world_child(environment_wrong);
  world_child(environment_once);
  world_child(api_beats_environment);
}

/* --- hook --------------------------------------------------------------------------------------------------------- */

static struct {
  int calls;
  sgl_compat_call call;
  char symbol[100], replacement[200], caller[600], text[2000], error[100];
  sgl_compat_warning_action answer;
} heard;

static sgl_compat_warning_action hook(const sgl_compat_warning *warning, void *user) {
  __atomic_add_fetch(&heard.calls, 1, __ATOMIC_SEQ_CST);
  if (user == &heard) {
    heard.call = warning->call;
    snprintf(heard.symbol, sizeof heard.symbol, "%s", warning->symbol);
    snprintf(heard.replacement, sizeof heard.replacement, "%s", warning->replacement);
    snprintf(heard.caller, sizeof heard.caller, "%s", warning->caller);
    snprintf(heard.text, sizeof heard.text, "%s", warning->text);
    sgl_compat_set_warning_hook(hook, user); /* may be called from here: no lock is held */
  }
  if (heard.error[0])
    snprintf(warning->error, warning->error_size, "%s", heard.error);
  errno = 99;
  return heard.answer;
}

static void hears(void) {
  begin();
  heard.answer = SGL_COMPAT_WARNING_SHOWN;
  sgl_compat_set_warning_hook(hook, &heard);
  EXPECT(world_stderr(call_first, NULL)[0] == '\0');
  errno = 7;
  call_second(NULL);
  EXPECT(errno == 7);
  EXPECT(heard.calls == 2 && heard.call == SGL_COMPAT_CALL_CXX && strcmp(heard.symbol, "dsv3_router_gemm") == 0);
  EXPECT_CONTAINS(heard.replacement, "sgl_kernel_jit::dsv3_router_gemm");
  EXPECT_CONTAINS(heard.caller, "second_site");
  EXPECT_CONTAINS(heard.text, heard.replacement);
  EXPECT_CONTAINS(heard.text, heard.caller);
  call_first(NULL);
  EXPECT(heard.calls == 2);
}
static void hook_prints(void) {
  begin();
  heard.answer = SGL_COMPAT_WARNING_PRINT;
  sgl_compat_set_warning_hook(hook, &heard);
  EXPECT(world_lines(world_stderr(call_first, NULL)) == 1);
  sgl_compat_set_warning_hook(NULL, NULL);
  EXPECT(world_lines(world_stderr(call_second, NULL)) == 1);
  EXPECT(heard.calls == 1);
}
static void hook_raises(void) {
  begin();
  heard.answer = SGL_COMPAT_WARNING_RAISE;
  sgl_compat_set_warning_hook(hook, &heard);
  for (int i = 1; i <= 40; i++) { /* every time, also after more calls than a site has places */
    EXPECT(world_throws(call_first, NULL));
    EXPECT(heard.calls == i);
  }
  EXPECT(strncmp(world_what, "the C++ function dsv3_router_gemm is deprecated, ", 48) == 0);
  EXPECT(!strstr(world_what, "called from"));
  snprintf(heard.error, sizeof heard.error, "as the hook says");
  EXPECT(world_throws(call_first, NULL));
  EXPECT_CONTAINS(world_what, "as the hook says");
  EXPECT(operands.output[0] == 0.0f);
  heard.answer = SGL_COMPAT_WARNING_SHOWN;
  EXPECT(!world_throws(call_first, NULL));
  EXPECT(!world_throws(call_first, NULL));
  EXPECT(heard.calls == 42);
  EXPECT(world_router_done(&operands));
}
static void hooks(void) {
  world_child(hears);
  world_child(hook_prints);
  world_child(hook_raises);
}

/* --- many --------------------------------------------------------------------------------------------------------- */

static bool warn_at(sgl_compat_call call, enum serve_kernel kernel, uintptr_t address) {
  char message[SERVE_MESSAGE];
  const void *at = (const void *)address;
  return warn_call(call, serve_symbol(kernel), usage_site(call, serve_symbol(kernel), at), at, message, sizeof message);
}

static pthread_barrier_t start;
static void *call_both(void *unused) {
  pthread_barrier_wait(&start);
  for (uintptr_t i = 0; i < 100; i++)
    warn_at(SGL_COMPAT_CALL_CXX, SERVE_DSV3_ROUTER_GEMM, 0x1000 + i % 10);
  return unused;
}
static void many_threads(void) {
  enum { THREADS = 16 };
  heard.answer = SGL_COMPAT_WARNING_SHOWN;
  sgl_compat_set_warning_hook(hook, NULL);
  pthread_t thread[THREADS];
  pthread_barrier_init(&start, NULL, THREADS);
  for (int i = 0; i < THREADS; i++)
    pthread_create(&thread[i], NULL, call_both, NULL);
  for (int i = 0; i < THREADS; i++)
    pthread_join(thread[i], NULL);
  EXPECT(heard.calls == 10);
}
static void threads(void) {
  world_child(many_threads);
}

/* Sites are told apart by name and kind too, and the memory for them has an end. */
static void many_sites(void) {
  heard.answer = SGL_COMPAT_WARNING_SHOWN;
  sgl_compat_set_warning_hook(hook, NULL);
  for (int again = 0; again < 2; again++)
    for (int kernel = 0; kernel < SERVE_COUNT; kernel++)
      for (sgl_compat_call call = SGL_COMPAT_CALL_CXX; call <= SGL_COMPAT_CALL_OPERATOR; call++)
        EXPECT(warn_at(call, (enum serve_kernel)kernel, 0x1000));
  EXPECT(heard.calls == 2 * SERVE_COUNT);
  for (uintptr_t site = 0x2000; site < 0x2000 + 5000; site++)
    EXPECT(warn_at(SGL_COMPAT_CALL_CXX, SERVE_DSV3_ROUTER_GEMM, site));
  EXPECT(heard.calls > 900 && heard.calls <= 1024);
  int calls = heard.calls;
  for (uintptr_t site = 0x2000; site < 0x2000 + 500; site++)
    EXPECT(warn_at(SGL_COMPAT_CALL_CXX, SERVE_DSV3_ROUTER_GEMM, site));
  EXPECT(heard.calls == calls);
}
static void bounded(void) {
  world_child(many_sites);
}

static const struct unit_test tests[] = {
    {"once", once},   {"caller", caller},   {"settings", settings},
    {"hooks", hooks}, {"threads", threads}, {"bounded", bounded},
};
UNIT_MAIN("shim.warn", tests)
