/* SGL_KERNEL_COMPAT_LOG=calls: a line for each call, whole, in files that stay small. */
#include "shim/call_log.h"

#include "tests/shim/world.h"

#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

extern size_t call_log_bytes;

static char folder[64];
static struct world_operands operands;

static void begin(void) {
  const char *given = getenv("SGL_TEST_FOLDER"); /* of the program before */
  strcpy(folder, given ? given : "/tmp/sgl-calls-XXXXXX");
  EXPECT(given || mkdtemp(folder) != NULL);
  setenv("SGL_KERNEL_COMPAT_LOG", "calls", 1);
  setenv("SGL_KERNEL_COMPAT_LOG_DIR", folder, 1);
  setenv("SGL_KERNEL_COMPAT_STATS", "/nowhere/at/all", 1); /* the other one goes first */
  setenv("SGL_KERNEL_COMPAT_WARN", "off", 1);
  EXPECT(world_torch("fake_torch") != NULL);
  EXPECT(sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0) == SGL_JIT_OK);
  world_router(&operands);
}

static void call(void *unused) {
  (void)unused;
  world_cxx_router(&operands.tensor[0], &operands.tensor[1], &operands.tensor[2]);
}

/* The lines of this process's file, or of a child's; the file is removed. */
static json_t *lines(const char *end, pid_t process) {
  char command[200], path[4096] = "", line[8192];
  json_t *all = json_array();
  snprintf(command, sizeof command, "ls %s/sgl-kernel-compat-*-%d-*.calls%s 2>/dev/null", folder, (int)process, end);
  FILE *list = popen(command, "r");
  if (!list || !fgets(path, sizeof path, list))
    path[0] = '\0';
  pclose(list);
  path[strcspn(path, "\n")] = '\0';
  FILE *file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file)) {
    json_t *value = json_loads(line, 0, NULL);
    EXPECT(value != NULL);
    json_array_append_new(all, value);
  }
  if (file) {
    struct stat s;
    EXPECT(fstat(fileno(file), &s) == 0 && (s.st_mode & 0777) == 0600);
    fclose(file);
  }
  unlink(path);
  return all;
}

static const char *string(const json_t *object, const char *key) {
  const char *value = json_string_value(json_object_get(object, key));
  return value ? value : "";
}

static void three_calls(void) {
  begin();
  call(NULL);
  operands.tensor[2].dtype = FAKE_FLOAT32;
  EXPECT(world_throws(call, NULL));
  json_t *all = lines("", getpid());
  EXPECT(json_array_size(all) == 2);
  const json_t *first = json_array_get(all, 0), *second = json_array_get(all, 1);
  EXPECT(strcmp(string(first, "symbol"), "dsv3_router_gemm") == 0 && strcmp(string(first, "face"), "cxx") == 0);
  EXPECT(strcmp(string(first, "outcome"), "ok") == 0 && strcmp(string(first, "device"), "cpu") == 0);
  EXPECT(strcmp(string(second, "outcome"), "error") == 0);
  EXPECT_CONTAINS(string(second, "message"), "dsv3_router_gemm: ");
  json_t *want =
      json_pack("[{s:s,s:s,s:s,s:[i,i],s:[i,i]},{s:s,s:s,s:s,s:[i,i],s:[i,i]},{s:s,s:s,s:s,s:[i,i],s:[i,i]}]", "name",
                "output", "dtype", "float32", "device", "cpu", "shape", 2, 16, "strides", 16, 1, "name", "mat_a",
                "dtype", "bfloat16", "device", "cpu", "shape", 2, 256, "strides", 256, 1, "name", "mat_b", "dtype",
                "bfloat16", "device", "cpu", "shape", 16, 256, "strides", 256, 1);
  EXPECT(json_equal(json_object_get(first, "tensors"), want));
  EXPECT(json_is_real(json_object_get(first, "time")) && json_is_integer(json_object_get(first, "thread")));
  json_decref(want);
  json_decref(all);
  EXPECT(rmdir(folder) == 0);
}
static void contents(void) {
  world_child(three_calls);
}

/* Two files at most, the newest lines in them. */
static void many_calls(void) {
  begin();
  call_log_bytes = 4000;
  for (int i = 0; i < 100; i++)
    call(NULL);
  json_t *old = lines(".old", getpid()), *all = lines("", getpid());
  size_t count = json_array_size(old);
  EXPECT(count >= 5 && count <= 12 && json_array_size(all) >= 1 && json_array_size(all) <= count);
  double last = json_number_value(json_object_get(json_array_get(old, count - 1), "time"));
  EXPECT(last <= json_number_value(json_object_get(json_array_get(all, 0), "time")));
  json_decref(old);
  json_decref(all);
  EXPECT(rmdir(folder) == 0);
}
static void bounded(void) {
  world_child(many_calls);
}

static void *call_often(void *unused) {
  static _Thread_local struct world_operands mine; /* each thread's own output */
  world_router(&mine);
  for (int i = 0; i < 50; i++)
    world_cxx_router(&mine.tensor[0], &mine.tensor[1], &mine.tensor[2]);
  return unused;
}
static void parent_and_child(void) {
  pthread_t thread[8];
  begin();
  unsetenv("SGL_KERNEL_COMPAT_STATS"); /* its thread would be there at the fork */
  for (int i = 0; i < 8; i++)
    EXPECT(pthread_create(&thread[i], NULL, call_often, NULL) == 0);
  for (int i = 0; i < 8; i++)
    pthread_join(thread[i], NULL);
  pid_t child = fork();
  if (child == 0) {
    call(NULL);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  json_t *parents = lines("", getpid()), *childs = lines("", child);
  EXPECT(json_array_size(parents) == 400 && json_array_size(childs) == 1);
  json_decref(parents);
  json_decref(childs);
  EXPECT(rmdir(folder) == 0);
}
static void threads_and_forks(void) {
  world_child(parent_and_child);
}

/* Run by the test below in a program of its own; by itself it does nothing. */
static void one_call(void) {
  if (getenv("SGL_TEST_FOLDER")) {
    begin();
    call(NULL);
  }
  CU_ASSERT_EQUAL(world_failures, 0);
}

/* exec keeps the pid and the start of the process. */
static void another_program(void) {
  begin();
  pid_t child = fork();
  if (child == 0) {
    call(NULL);
    setenv("SGL_TEST_FOLDER", folder, 1);
    freopen("/dev/null", "w", stdout);
    execl("/proc/self/exe", "test_call_log", "one_call", (char *)NULL);
    _exit(1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT(status == 0);
  for (int program = 0; program < 2; program++) {
    json_t *all = lines("", child);
    EXPECT(json_array_size(all) == 1);
    json_decref(all);
  }
  EXPECT(rmdir(folder) == 0);
}
static void exec_keeps(void) {
  world_child(another_program);
}

static void call_three_times(void *unused) {
  for (int i = 0; i < 3; i++)
    call(unused);
}

static void over_the_limit(void) {
  begin();
  struct rlimit limit = {1000, 1000};
  EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  signal(SIGXFSZ, SIG_DFL);
  for (int i = 0; i < 5; i++)
    call(NULL);
  EXPECT(world_router_done(&operands));
  json_t *all = lines("", getpid());
  EXPECT(json_array_size(all) == 1 || json_array_size(all) == 2); /* whole ones */
  json_decref(all);
  EXPECT(rmdir(folder) == 0);
}
static void says_why_and_goes_on(const char *variable, const char *value, const char *says) {
  begin();
  rmdir(folder);
  setenv(variable, value, 1);
  const char *text = world_stderr(call_three_times, NULL);
  EXPECT(world_lines(text) == (says[0] != '\0'));
  EXPECT_CONTAINS(text, says);
  EXPECT(world_router_done(&operands));
}
static void no_folder(void) {
  says_why_and_goes_on("SGL_KERNEL_COMPAT_LOG_DIR", "/dev/null/x",
                       "sgl-kernel-compat: calls are not logged any more, /dev/null/x/sgl-kernel-compat-");
}
static void unknown(void) {
  says_why_and_goes_on("SGL_KERNEL_COMPAT_LOG", "all", "SGL_KERNEL_COMPAT_LOG is neither calls nor off; taking off");
}
static void off(void) {
  says_why_and_goes_on("SGL_KERNEL_COMPAT_LOG", "off", "");
}
static void faults(void) {
  world_child(over_the_limit);
  world_child(no_folder);
  world_child(unknown);
  world_child(off);
}

static const struct unit_test tests[] = {
    {"contents", contents}, {"bounded", bounded},       {"threads_and_forks", threads_and_forks},
    {"one_call", one_call}, {"exec_keeps", exec_keeps}, {"faults", faults}};
UNIT_MAIN("shim.call_log", tests)
