/* Shadow comparison on the CPU: the kernel is the reference backend, and a test changes its output to make a mismatch.
 */
#include "shim/host.h"
#include "shim/shadow.h"
#include "shim/shadow_file.h"
#include "tests/shim/world.h"

#include <dirent.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

static const struct shadow_settings always = {.first = 1000000};
static struct world_operands operands;
static struct fake_state *torch;

static void prepare(void) {
  char message[512];
  torch = world_torch("fake_torch");
  EXPECT(sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, message, sizeof message) == SGL_JIT_OK);
  sgl_compat_set_warnings(SGL_COMPAT_WARNINGS_OFF, NULL, 0);
  world_router(&operands);
}

static void call(void) {
  world_cxx_router(&operands.tensor[0], &operands.tensor[1], &operands.tensor[2]);
}

static void views_of(sgl_jit_tensor views[3], struct fake_tensor t[3]) {
  for (int i = 0; i < 3; i++)
    views[i] = (sgl_jit_tensor){t[i].data,
                                t[i].dtype == FAKE_FLOAT32 ? SGL_JIT_DTYPE_FLOAT32 : SGL_JIT_DTYPE_BFLOAT16,
                                SGL_JIT_DEVICE_CPU,
                                0,
                                2,
                                t[i].sizes,
                                t[i].strides};
}

/* As after a kernel whose output is what is in the operands now. */
static void after(void) {
  sgl_jit_tensor views[3];
  views_of(views, operands.tensor);
  void *tensors[3] = {&operands.tensor[0], &operands.tensor[1], &operands.tensor[2]};
  shadow_after(NULL, SERVE_DSV3_ROUTER_GEMM, views, tensors, NULL);
}

static void in_off(void) {
  prepare();
  call();
  EXPECT(world_router_done(&operands));
  struct shadow_counts c = shadow_get_counts(SERVE_DSV3_ROUTER_GEMM);
  EXPECT(c.calls == 0 && c.matches == 0);
  EXPECT(!shadow_is_on(SERVE_DSV3_ROUTER_GEMM));
}
static void off(void) {
  world_child(in_off);
}

static void in_matches(void) {
  prepare();
  EXPECT(shadow_set(SERVE_DSV3_ROUTER_GEMM, &always));
  EXPECT(shadow_is_on(SERVE_DSV3_ROUTER_GEMM) && !shadow_is_on(SERVE_DSV3_FUSED_A_GEMM));
  for (int i = 0; i < 5; i++)
    call();
  struct shadow_counts c = shadow_get_counts(SERVE_DSV3_ROUTER_GEMM);
  EXPECT(c.calls == 5 && c.matches == 5 && c.mismatches == 0 && c.errors == 0);
  EXPECT(world_router_done(&operands));
  EXPECT(shadow_set(SERVE_DSV3_FUSED_A_GEMM, &always));
  struct world_operands fused;
  world_fused_a(&fused);
  world_cxx_fused_a(&fused.tensor[0], &fused.tensor[1], &fused.tensor[2]);
  EXPECT(shadow_get_counts(SERVE_DSV3_FUSED_A_GEMM).matches == 1);
  struct world_bmm bmm;
  world_bmm(&bmm);
  EXPECT(shadow_set(SERVE_BMM_FP8, &always));
  struct fake_tensor *t = bmm.tensor;
  world_cxx_bmm(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], 0);
  c = shadow_get_counts(SERVE_BMM_FP8);
  EXPECT(c.calls == 1 && c.matches == 1);
  shadow_set(SERVE_DSV3_ROUTER_GEMM, NULL);
  call();
  EXPECT(shadow_get_counts(SERVE_DSV3_ROUTER_GEMM).calls == 5);
}
static void matches(void) {
  world_child(in_matches);
}

static void in_sampling(void) {
  prepare();
  EXPECT(shadow_set(SERVE_DSV3_ROUTER_GEMM, &(struct shadow_settings){.first = 3, .every = 10}));
  for (int i = 0; i < 41; i++)
    call();
  struct shadow_counts c = shadow_get_counts(SERVE_DSV3_ROUTER_GEMM);
  EXPECT(c.calls == 41 && c.matches == 3 + 4); /* 0, 1, 2; 10, 20, 30, 40 */
}
static void sampling(void) {
  world_child(in_sampling);
}

extern uint64_t (*shadow_now)(void);

/* Each look at it is 0.4 ms later: so long takes a comparison. */
static uint64_t slow_clock;
static uint64_t slow_now(void) {
  return slow_clock += 400000;
}

/* Of five calls so many are compared. */
static uint64_t compared(void) {
  uint64_t before = shadow_get_counts(SERVE_DSV3_ROUTER_GEMM).matches;
  for (int i = 0; i < 5; i++)
    call();
  return shadow_get_counts(SERVE_DSV3_ROUTER_GEMM).matches - before;
}

/* A millisecond of each second. What the last comparison took too much comes off the next second; a quiet hour saves
 * nothing up. */
static void in_budget(void) {
  prepare();
  shadow_now = slow_now;
  slow_clock = 7000000000;
  EXPECT(shadow_set(SERVE_DSV3_ROUTER_GEMM, &(struct shadow_settings){.first = 1000000, .budget = 1}));
  EXPECT(compared() == 3);
  EXPECT(compared() == 0);
  slow_clock = 8000000000;
  EXPECT(compared() == 2);
  slow_clock = 8000000000 + 3600000000000;
  EXPECT(compared() == 3);
  struct shadow_counts c = shadow_get_counts(SERVE_DSV3_ROUTER_GEMM);
  EXPECT(c.calls == 20 && c.matches == 8 && c.over_budget == 12);
  EXPECT(shadow_set(SERVE_DSV3_ROUTER_GEMM, &(struct shadow_settings){.first = 1000000}));
  EXPECT(compared() == 5);
  EXPECT(shadow_set(SERVE_DSV3_ROUTER_GEMM, &(struct shadow_settings){.first = 1000000, .budget = 1}));
  slow_clock += 2000000000;
  EXPECT(compared() == 3); /* what took place without a budget does not count */
}
static void budget(void) {
  world_child(in_budget);
}

/* --- mismatches --- */

static char folder[] = "/tmp/sgl-shadow-XXXXXX";

static int files(char *first, size_t size) {
  int count = 0;
  DIR *d = opendir(folder);
  for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
    if (e->d_name[0] != '.') {
      if (first)
        snprintf(first, size, "%s/%s", folder, e->d_name);
      count++;
    }
  if (d)
    closedir(d);
  return count;
}

static void spoilt(void *unused) {
  (void)unused;
  call();
  operands.output[5] = 1000;
  after();
}

static void in_mismatch(void) {
  prepare();
  setenv("SGL_KERNEL_COMPAT_SHADOW_DIR", folder, 1);
  EXPECT(shadow_set(SERVE_DSV3_ROUTER_GEMM, &always));
  char path[4096];
  const char *text = world_stderr(spoilt, NULL);
  EXPECT(world_lines(text) == 1);
  EXPECT_CONTAINS(
      text, "dsv3_router_gemm: the JIT kernel's output differs from the reference's by 0.0617 of its norm, 1e-06 is "
            "allowed; saved in ");
  struct shadow_counts c = shadow_get_counts(SERVE_DSV3_ROUTER_GEMM);
  EXPECT(c.calls == 2 && c.matches == 1 && c.mismatches == 1);
  EXPECT(files(path, sizeof path) == 1);
  EXPECT_CONTAINS(text, path);
  EXPECT(operands.output[5] == 1000); /* the caller's stays */

  struct shadow_record record;
  char message[512] = "";
  EXPECT(shadow_load(path, &record, message, sizeof message));
  EXPECT(message[0] == '\0');
  EXPECT(record.kernel == SERVE_DSV3_ROUTER_GEMM && strcmp(record.other_name, "reference") == 0);
  EXPECT(fabs(record.error - 0.0617) < 1e-4 && record.tolerance == 1e-6);
  EXPECT(record.tensors[1].ndim == 2 && record.tensors[1].sizes[1] == WORLD_K);
  EXPECT(memcmp(record.tensors[1].data, operands.a, sizeof operands.a) == 0);
  EXPECT(memcmp(record.tensors[2].data, operands.b, sizeof operands.b) == 0);
  EXPECT(memcmp(record.tensors[0].data, operands.output, sizeof operands.output) == 0);
  EXPECT(((const float *)record.other)[5] == 1536);
  EXPECT(host_reference(record.kernel, record.tensors, NULL, NULL, 0) == SGL_JIT_OK);
  EXPECT(((float *)record.tensors[0].data)[5] == 1536);
  shadow_record_free(&record);

  text = world_stderr(spoilt, NULL); /* said once; three files */
  EXPECT(world_lines(text) == 0);
  for (int i = 0; i < 4; i++)
    spoilt(NULL);
  EXPECT(files(NULL, 0) == SHADOW_FILES);
  EXPECT(shadow_get_counts(SERVE_DSV3_ROUTER_GEMM).mismatches == 6);
}
static void mismatch(void) {
  if (!mkdtemp(folder))
    CU_FAIL("no folder");
  world_child(in_mismatch);
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  CU_ASSERT_EQUAL(system(command), 0);
}

extern unsigned usage_first_ms, usage_interval_ms;

static uint64_t late_now(void) {
  usleep(50000);
  return slow_now();
}

/* Statistics are written while the only call is compared, and then nothing else happens. */
static void in_statistics(void) {
  char command[128];
  setenv("SGL_KERNEL_COMPAT_STATS", folder, 1);
  usage_first_ms = usage_interval_ms = 1;
  shadow_now = late_now;
  prepare();
  EXPECT(shadow_set(SERVE_DSV3_ROUTER_GEMM, &always));
  call();
  EXPECT(shadow_get_counts(SERVE_DSV3_ROUTER_GEMM).matches == 1);
  snprintf(command, sizeof command, "grep -q '\"calls\":1,\"matches\":1,' %s/*.jsonl", folder);
  for (int i = 0; i < 100 && system(command) != 0; i++)
    usleep(20000);
  EXPECT(system(command) == 0);
}
static void statistics(void) {
  char own[] = "/tmp/sgl-shadow-XXXXXX", command[128];
  EXPECT(mkdtemp(own) != NULL);
  memcpy(folder, own, sizeof own);
  world_child(in_statistics);
  snprintf(command, sizeof command, "rm -rf %s", own);
  EXPECT(system(command) == 0);
}

static void in_no_folder(void) {
  prepare();
  unsetenv("SGL_KERNEL_COMPAT_SHADOW_DIR");
  EXPECT(shadow_set(SERVE_DSV3_ROUTER_GEMM, &always));
  EXPECT_CONTAINS(world_stderr(spoilt, NULL), "not saved: SGL_KERNEL_COMPAT_SHADOW_DIR names no folder");
}
static void in_missing_folder(void) {
  prepare();
  setenv("SGL_KERNEL_COMPAT_SHADOW_DIR", "/nonexistent/folder", 1);
  EXPECT(shadow_set(SERVE_DSV3_ROUTER_GEMM, &always));
  EXPECT_CONTAINS(world_stderr(spoilt, NULL), "not saved: /nonexistent/folder/dsv3_router_gemm-");
}
/* The disk is full within the file: nothing stays. */
static void in_full_disk(void) {
  prepare();
  signal(SIGXFSZ, SIG_DFL); /* which ends a process */
  char own[] = "/tmp/sgl-shadow-XXXXXX";
  EXPECT(mkdtemp(own) != NULL);
  memcpy(folder, own, sizeof own);
  setenv("SGL_KERNEL_COMPAT_SHADOW_DIR", own, 1);
  EXPECT(shadow_set(SERVE_DSV3_ROUTER_GEMM, &always));
  struct rlimit limit = {2000, 2000};
  setrlimit(RLIMIT_FSIZE, &limit);
  spoilt(NULL);
  EXPECT(shadow_get_counts(SERVE_DSV3_ROUTER_GEMM).mismatches == 1);
  EXPECT(files(NULL, 0) == 0);
  rmdir(own);
}
static void in_another_rank(void) {
  setenv("RANK", "1", 1);
  prepare();
  EXPECT(shadow_set(SERVE_DSV3_ROUTER_GEMM, &always));
  EXPECT(world_lines(world_stderr(spoilt, NULL)) == 0);
  EXPECT(shadow_get_counts(SERVE_DSV3_ROUTER_GEMM).mismatches == 1);
}
static void not_saved(void) {
  world_child(in_no_folder);
  world_child(in_missing_folder);
  world_child(in_full_disk);
  world_child(in_another_rank);
}

static void in_returns_other(void) {
  prepare();
  struct shadow_settings settings = always;
  settings.returns_other = true;
  EXPECT(shadow_set(SERVE_DSV3_ROUTER_GEMM, &settings));
  call();
  operands.output[5] = 1000;
  after();
  EXPECT(operands.output[5] == 1536);
}
static void in_tolerance(void) {
  prepare();
  struct shadow_settings settings = always;
  settings.tolerance = 0.1;
  EXPECT(shadow_set(SERVE_DSV3_ROUTER_GEMM, &settings));
  spoilt(NULL);
  EXPECT(shadow_get_counts(SERVE_DSV3_ROUTER_GEMM).matches == 2);
}
static void settings(void) {
  world_child(in_returns_other);
  world_child(in_tolerance);
}

static void errors(void) {
  const float a[3] = {1, 2, 2}, b[3] = {1, 2, 2.5f}, zero[3] = {0}, nan_one[3] = {1, NAN, 2}, inf[3] = {1, INFINITY, 2};
  CU_ASSERT_EQUAL(shadow_error(a, a, SGL_JIT_DTYPE_FLOAT32, 3), 0);
  CU_ASSERT_DOUBLE_EQUAL(shadow_error(a, b, SGL_JIT_DTYPE_FLOAT32, 3), 0.5 / sqrt(11.25), 1e-12);
  CU_ASSERT_EQUAL(shadow_error(zero, zero, SGL_JIT_DTYPE_FLOAT32, 3), 0);
  CU_ASSERT(isinf(shadow_error(a, zero, SGL_JIT_DTYPE_FLOAT32, 3)));
  CU_ASSERT(isinf(shadow_error(nan_one, a, SGL_JIT_DTYPE_FLOAT32, 3)));
  CU_ASSERT(isinf(shadow_error(a, nan_one, SGL_JIT_DTYPE_FLOAT32, 3)));
  CU_ASSERT_EQUAL(shadow_error(nan_one, nan_one, SGL_JIT_DTYPE_FLOAT32, 3), 0);
  CU_ASSERT_EQUAL(shadow_error(inf, inf, SGL_JIT_DTYPE_FLOAT32, 3), 0);
  const uint16_t half[3] = {0x3c00, 0x0001, 0xc000},
                 half_other[3] = {0x3c00, 0x0001, 0xc100}; /* 1, 2^-24, -2 and -2.5 */
  CU_ASSERT_DOUBLE_EQUAL(shadow_error(half, half_other, SGL_JIT_DTYPE_FLOAT16, 3), 0.5 / sqrt(7.25), 1e-9);
}

/* --- an old wheel in the process --- */

static void with_old_wheel(int byte, int fails) {
  prepare();
  EXPECT(world_load("fake_old_wheel", "common_ops.abi3.so", RTLD_LOCAL) != NULL);
  torch->old_byte = byte;
  torch->old_fails = fails;
  EXPECT(shadow_set(SERVE_DSV3_ROUTER_GEMM, &always));
  sgl_jit_tensor views[3];
  views_of(views, operands.tensor);
  void *tensors[3] = {&operands.tensor[0], &operands.tensor[1], &operands.tensor[2]};
  memset(operands.output, 0x41, sizeof operands.output); /* 12.08 */
  shadow_after(torch_abi_get(), SERVE_DSV3_ROUTER_GEMM, views, tensors, NULL);
  EXPECT(strcmp(torch->dispatched, "sgl_kernel::dsv3_router_gemm") == 0);
  EXPECT(torch->handles == 4 && torch->deleted == 4);
  EXPECT(operands.tensor[0].deleted == 0 && operands.tensor[1].deleted == 0);
}
static void in_old_agrees(void) {
  with_old_wheel(0x41, 0);
  EXPECT(shadow_get_counts(SERVE_DSV3_ROUTER_GEMM).matches == 1);
}
static void in_old_differs(void) {
  with_old_wheel(0x42, 0);
  EXPECT(shadow_get_counts(SERVE_DSV3_ROUTER_GEMM).mismatches == 1);
}
static void in_old_fails(void) {
  with_old_wheel(0x41, 1);
  struct shadow_counts c = shadow_get_counts(SERVE_DSV3_ROUTER_GEMM);
  EXPECT(c.errors == 1 && c.matches == 0 && c.mismatches == 0);
}
static void old_wheel(void) {
  world_child(in_old_agrees);
  world_child(in_old_differs);
  world_child(in_old_fails);
}

/* --- files that are not what they should be --- */

static bool loads(const char *content, size_t size, char *message, size_t message_size) {
  char path[] = "/tmp/sgl-shadow-file-XXXXXX";
  int file = mkstemp(path);
  bool written = file >= 0 && write(file, content, size) == (ssize_t)size;
  close(file);
  struct shadow_record record;
  message[0] = '\0';
  bool ok = written && shadow_load(path, &record, message, message_size);
  if (ok)
    shadow_record_free(&record);
  unlink(path);
  return ok;
}

#define HEAD "sgl-kernel-compat shadow 1\nsymbol dsv3_router_gemm\nother reference\nerror 1\ntolerance 1e-6\n"
#define INPUTS "tensor mat_a bfloat16 1,1 1,1 2\ntensor mat_b bfloat16 1,1 1,1 2\n"
#define OUTPUT "tensor output float32 1,1 1,1 4\n"
#define OTHER "tensor other float32 1,1 1,1 4\n"

static void bad_files(void) {
  char message[512];
  const char good[] = HEAD OUTPUT INPUTS OTHER "end\n"
                                               "abcdefghijkl";
  CU_ASSERT(loads(good, sizeof good - 1, message, sizeof message));
  for (size_t size = 0; size + 1 < sizeof good; size++) {
    CU_ASSERT(!loads(good, size, message, sizeof message));
    CU_ASSERT(message[0] != '\0');
  }
  CU_ASSERT(!loads(good, sizeof good, message, sizeof message)); /* one byte more */
  UNIT_CONTAINS(message, "follows its last tensor");
  static const char *const bad[] = {
      "",
      "hello\n",
      HEAD "end\n",
      HEAD OUTPUT INPUTS "end\n",
      HEAD OUTPUT INPUTS OTHER OTHER "end\nabcdefghijkl",
      HEAD INPUTS OUTPUT OTHER "end\nabcdefghijkl",
      HEAD OUTPUT INPUTS "tensor other bfloat16 1,1 1,1 2\nend\nabcdefghij",
      HEAD "tensor output float32 1,1 1,1 5\n" INPUTS OTHER "end\nabcdefghijklm",
      HEAD "tensor output float64 1,1 1,1 8\n" INPUTS OTHER "end\nabcdefghijklmnop",
      HEAD "tensor output float32 999999999,999999999 1,1 4\n" INPUTS OTHER "end\nabcdefghijkl",
      HEAD "tensor output float32 -1,1 1,1 4\n" INPUTS OTHER "end\nabcdefghijkl",
      HEAD "tensor output float32 1,1,1,1,1 1,1,1,1,1 4\n" INPUTS OTHER "end\nabcdefghijkl",
      HEAD "symbol dsv3_fused_a_gemm\n" OUTPUT INPUTS OTHER "end\nabcdefghijkl",
      "sgl-kernel-compat shadow 1\nsymbol nothing\n" OUTPUT INPUTS OTHER "end\nabcdefghijkl",
      "sgl-kernel-compat shadow 1\n" OUTPUT INPUTS OTHER "end\nabcdefghijkl",
      HEAD "what is this\nend\n",
      "sgl-kernel-compat shadow 2\nend\n"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    CU_ASSERT(!loads(bad[i], strlen(bad[i]), message, sizeof message));
    UNIT_CONTAINS(message, "/tmp/sgl-shadow-file-");
  }
  struct shadow_record record;
  CU_ASSERT(!shadow_load("/nonexistent", &record, message, sizeof message));
  UNIT_CONTAINS(message, "/nonexistent: No such file");
  CU_ASSERT(!shadow_load("/tmp", &record, message, sizeof message));
}

static const struct unit_test tests[] = {
    {"off", off},
    {"matches", matches},
    {"sampling", sampling},
    {"budget", budget},
    {"mismatch", mismatch},
    {"not_saved", not_saved},
    {"statistics", statistics},
    {"settings", settings},
    {"errors", errors},
    {"old_wheel", old_wheel},
    {"bad_files", bad_files},
};
UNIT_MAIN("shim/shadow", tests)
