/* Statistics: exact counts, in threads and after a fork; files that are whole or not there. */
#include "shim/shadow.h"
#include "shim/usage.h"

#include "tests/shim/world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define EXPECT_STRINGS(have, want) EXPECT(unit_equal_strings((have), (want)))

extern unsigned usage_interval_ms;

/* --- files -------------------------------------------------------------------------------------------------------- */

static char folder[64];

static void make_folder(void) {
  strcpy(folder, "/tmp/sgl-usage-XXXXXX");
  EXPECT(mkdtemp(folder) != NULL);
}

/* How many files of the folder end so; the path of the last of them. */
static int files(const char *end, char *path, size_t size) {
  DIR *list = opendir(folder);
  int count = 0;
  for (struct dirent *entry; list && (entry = readdir(list));) {
    size_t length = strlen(entry->d_name), wanted = strlen(end);
    if (entry->d_type != DT_REG || length < wanted || strcmp(entry->d_name + length - wanted, end) != 0)
      continue;
    count++;
    snprintf(path, size, "%s/%s", folder, entry->d_name);
  }
  if (list)
    closedir(list);
  return count;
}

static char *text_of(const char *path) {
  static char text[1 << 16];
  FILE *file = fopen(path, "r");
  text[file ? fread(text, 1, sizeof text - 1, file) : 0] = '\0';
  if (file)
    fclose(file);
  return text;
}

/* The one file of the folder as a list of values; the folder is removed. */
static json_t *lines(void) {
  char path[400], other[400];
  json_t *all = json_array();
  EXPECT(files(".jsonl", path, sizeof path) == 1);
  EXPECT(files(".prom", other, sizeof other) == 1);
  EXPECT(files("", other, sizeof other) == 2); /* no left-overs */
  for (char *line = strtok(text_of(path), "\n"); line; line = strtok(NULL, "\n")) {
    json_error_t error;
    json_t *value = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    if (!value)
      fprintf(stderr, "  %s: %s\n", line, error.text);
    EXPECT(value != NULL);
    json_array_append_new(all, value);
  }
  return all;
}

static void remove_folder(void) {
  char path[400];
  while (files("", path, sizeof path) > 0 && unlink(path) == 0)
    ;
  EXPECT(rmdir(folder) == 0);
}

/* All calls of a symbol, face and stage in the file. */
static long long calls_of(const json_t *all, const char *symbol, const char *face, const char *stage) {
  long long sum = 0;
  size_t i;
  const json_t *line;
  json_array_foreach(all, i, line) {
    const char *name = json_string_value(json_object_get(line, "symbol"));
    const char *is = json_string_value(json_object_get(line, "face"));
    if (name && is && strcmp(name, symbol) == 0 && strcmp(is, face) == 0)
      sum += json_integer_value(json_object_get(json_object_get(line, "calls"), stage));
  }
  return sum;
}

static json_t *written(void) {
  char message[500] = "";
  make_folder();
  EXPECT(sgl_compat_usage_write(folder, message, sizeof message) == SGL_COMPAT_OK);
  EXPECT_STRINGS(message, "");
  json_t *all = lines();
  return all;
}

/* --- counts ------------------------------------------------------------------------------------------------------- */

static pthread_barrier_t start;
enum { THREADS = 16, ROUNDS = 20000 };

static void *count_in_thread(void *unused) {
  pthread_barrier_wait(&start);
  for (uintptr_t i = 0; i < ROUNDS; i++) {
    usage_count(usage_site(SGL_COMPAT_CALL_CXX, serve_symbol(SERVE_DSV3_ROUTER_GEMM), (void *)(0x1000 + i % 7)),
                SGL_COMPAT_STAGE_WARN);
    usage_count(usage_site(SGL_COMPAT_CALL_OPERATOR, serve_symbol(SERVE_BMM_FP8), (void *)0x1000),
                SGL_COMPAT_STAGE_SILENT);
    usage_kernel(SERVE_DSV3_ROUTER_GEMM, 256 + 8 * (int64_t)(i % 3), 7168, SGL_JIT_DTYPE_FLOAT32);
    if (i % 16 == 0) {
      void *count = sgl_compat_usage_python("awq_dequantize", SGL_COMPAT_CALL_PYTHON, "warn", "model.layers",
                                            "/srv/model/layers.py", (unsigned)(i / 16 % 50));
      sgl_compat_usage_again(count);
    }
    if (i % 5000 == 0) { /* writing goes on meanwhile */
      size_t rows;
      free(usage_rows(&rows));
    }
  }
  return unused;
}

static void sixteen_threads(void) {
  pthread_t thread[THREADS];
  pthread_barrier_init(&start, NULL, THREADS);
  for (int i = 0; i < THREADS; i++)
    EXPECT(pthread_create(&thread[i], NULL, count_in_thread, NULL) == 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(thread[i], NULL);
  json_t *all = written();
  EXPECT(calls_of(all, "dsv3_router_gemm", "cxx", "warn") == (long long)THREADS * ROUNDS);
  EXPECT(calls_of(all, "bmm_fp8", "operator", "silent") == (long long)THREADS * ROUNDS);
  EXPECT(calls_of(all, "awq_dequantize", "python", "warn") == 2LL * THREADS * (ROUNDS / 16));
  EXPECT(json_array_size(all) == 1 + 7 + 1 + 50 + 3);
  long long sum = 0;
  size_t i;
  json_t *line;
  json_array_foreach(all, i, line) {
    if (json_object_get(line, "kernel"))
      sum += json_integer_value(json_object_get(line, "calls"));
  }
  EXPECT(sum == (long long)THREADS * ROUNDS);
  json_decref(all);
  remove_folder();
}
static void threads(void) {
  world_child(sixteen_threads);
}

/* What is in the lines of real calls. */
static struct world_operands operands;
static volatile int after;
__attribute__((noinline, visibility("default"))) int the_caller(void);
int the_caller(void) {
  world_cxx_router(&operands.tensor[0], &operands.tensor[1], &operands.tensor[2]);
  return ++after;
}

static void call(void *unused) {
  (void)unused;
  the_caller();
}

static const json_t *line_of(const json_t *all, const char *key, const char *value) {
  size_t i;
  const json_t *line;
  json_array_foreach(all, i, line) {
    const char *is = json_string_value(json_object_get(line, key));
    if (is && strcmp(is, value) == 0)
      return line;
  }
  static json_t *none;
  return none = none ? none : json_object();
}
static const char *string(const json_t *object, const char *key) {
  const char *value = json_string_value(json_object_get(object, key));
  return value ? value : "";
}

static char sampled[100];
static int samples;
static void sampler(const char *symbol) {
  snprintf(sampled, sizeof sampled, "%s", symbol);
  samples++;
  sgl_compat_usage_python(symbol, SGL_COMPAT_CALL_OPERATOR, NULL, "model",
                          "/srv/mod\xff"
                          "el.py",
                          12);
}

static void real_calls(void) {
  setenv("RANK", "3", 1);
  setenv("SLURM_JOB_ID", "job \"7\"", 1);
  EXPECT(world_torch("fake_torch") != NULL);
  EXPECT(sgl_jit_set_backend(SGL_JIT_BACKEND_REFERENCE, NULL, 0) == SGL_JIT_OK);
  EXPECT(sgl_compat_set_warnings(SGL_COMPAT_WARNINGS_OFF, NULL, 0) == SGL_COMPAT_OK);
  world_router(&operands);
  for (int i = 0; i < 3; i++)
    the_caller();
  operands.tensor[2].dtype = FAKE_FLOAT32; /* which no kernel takes */
  EXPECT(world_throws(call, NULL));
  sgl_compat_set_usage_sampler(sampler);
  for (int i = 0; i < 40; i++) {
    struct usage_site *site = usage_site(SGL_COMPAT_CALL_OPERATOR, serve_symbol(SERVE_DSV3_FUSED_A_GEMM), (void *)0x10);
    if (usage_is_sampled(usage_count(site, SGL_COMPAT_STAGE_WARN)))
      usage_sample(SERVE_DSV3_FUSED_A_GEMM);
  }
  EXPECT(samples == USAGE_SAMPLES + 2); /* the first ones, and those after 16 and 32 */
  EXPECT_STRINGS(sampled, "dsv3_fused_a_gemm");
  json_t *all = written();
  const json_t *header = json_array_get(all, 0), *use = line_of(all, "symbol", "dsv3_router_gemm");
  EXPECT_STRINGS(string(header, "schema"), "sgl-kernel-compat-usage/1");
  EXPECT_STRINGS(string(header, "job"), "SLURM_JOB_ID=job \"7\"");
  EXPECT_STRINGS(string(header, "rank"), "3");
  EXPECT(json_integer_value(json_object_get(header, "pid")) == getpid());
  EXPECT(json_integer_value(json_object_get(json_object_get(use, "calls"), "warn")) == 4);
  EXPECT(json_integer_value(json_object_get(use, "failed")) == 1);
  EXPECT_STRINGS(string(use, "removed_in"), "0.4.5");
  long long first = json_integer_value(json_object_get(use, "first"));
  EXPECT(first <= time(NULL) && first > time(NULL) - 600);
  const json_t *caller = json_object_get(use, "caller");
  EXPECT_CONTAINS(string(caller, "file"), "test_usage");
  EXPECT_STRINGS(string(caller, "function"), "the_caller");
  EXPECT(strncmp(string(caller, "offset"), "0x", 2) == 0);
  const json_t *kernel = line_of(all, "kernel", "dsv3_router_gemm:16x256:float32");
  EXPECT(json_integer_value(json_object_get(kernel, "calls")) == 3); /* the failed call ran none */
  EXPECT(calls_of(all, "dsv3_fused_a_gemm", "operator", "warn") == 40);
  size_t i;
  const json_t *line, *found = NULL;
  json_array_foreach(all, i, line) {
    if (json_object_get(line, "samples"))
      found = line;
  }
  EXPECT(json_integer_value(json_object_get(found, "samples")) == USAGE_SAMPLES + 2);
  EXPECT_STRINGS(string(json_object_get(found, "caller"), "file"), "/srv/mod\\xffel.py");
  char path[400];
  files(".prom", path, sizeof path);
  const char *metrics = text_of(path);
  EXPECT_CONTAINS(metrics, "# TYPE sgl_kernel_compat_calls_total counter\n");
  EXPECT_CONTAINS(
      metrics, "sgl_kernel_compat_calls_total{symbol=\"dsv3_router_gemm\",face=\"cxx\",stage=\"warn\","
               "removed_in=\"0.4.5\",module=\"test_usage\",job_id=\"SLURM_JOB_ID=job \\\"7\\\"\",rank=\"3\",host=\"");
  EXPECT_CONTAINS(metrics, "\"} 4\n");
  json_decref(all);
  remove_folder();
}
static void contents(void) {
  world_child(real_calls);
}

static void python_places(void) {
  EXPECT(sgl_compat_usage_python("nothing", SGL_COMPAT_CALL_PYTHON, "warn", "m", "f", 1) == NULL);
  EXPECT(sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "loud", "m", "f", 1) == NULL);
  EXPECT(sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_CXX, "warn", "m", "f", 1) == NULL);
  EXPECT(sgl_compat_usage_python(NULL, SGL_COMPAT_CALL_PYTHON, "warn", "m", "f", 1) == NULL);
  void *one = sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "warn", "m", "f", 1);
  EXPECT(one && sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "warn", "m", "f", 1) == one);
  EXPECT(sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "error", "m", "f", 1) != one);
  EXPECT(sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "warn", "m", "f", 2) != one);
  EXPECT(sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "warn", NULL, NULL, 0) != one);
  for (unsigned line = 0; line < 20000; line++) /* code that makes code */
    EXPECT(sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "warn", "m", "g", line) != NULL);
  sgl_compat_usage_again(NULL);
  size_t count;
  struct usage_row *rows = usage_rows(&count);
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++)
    sum += rows[i].calls[SGL_COMPAT_STAGE_WARN];
  EXPECT(sum == 20000 + 4 && count < 10000);
  free(rows);
}
static void places(void) {
  world_child(python_places);
}

/* Shadow's outcomes are written, also where it is on and no call has come. */
static void shadow_lines(void) {
  static const struct shadow_settings settings = {.first = 1};
  EXPECT(shadow_set(SERVE_BMM_FP8, &settings));
  json_t *all = written();
  const json_t *line = line_of(all, "shadow", "bmm_fp8");
  EXPECT(json_is_integer(json_object_get(line, "calls")) && json_is_integer(json_object_get(line, "over_budget")));
  EXPECT(json_array_size(all) == 2);
  char path[400];
  files(".prom", path, sizeof path);
  EXPECT_CONTAINS(text_of(path), "sgl_kernel_compat_shadow_total{symbol=\"bmm_fp8\",outcome=\"mismatch\",");
  json_decref(all);
  remove_folder();
}
static void shadow(void) {
  world_child(shadow_lines);
}

/* --- the process -------------------------------------------------------------------------------------------------- */

static void count_once(enum serve_kernel kernel) {
  usage_count(usage_site(SGL_COMPAT_CALL_CXX, serve_symbol(kernel), (void *)0x1000), SGL_COMPAT_STAGE_WARN);
}

/* Ends as programs do, so that destructors run; its own result is the status. */
static void exits(void (*f)(void)) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    f();
    exit(world_failures ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT(status == 0);
}

static void parent_and_child(void) {
  count_once(SERVE_DSV3_ROUTER_GEMM);
  void *place = sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "warn", "m", "f", 1);
  pid_t child = fork();
  if (child == 0) {
    count_once(SERVE_BMM_FP8);
    sgl_compat_usage_again(place);
    exit(world_failures ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT(status == 0);
  pid_t idle = fork();
  if (idle == 0)
    exit(0); /* has used nothing: no file */
  waitpid(idle, &status, 0);
}
static void count_files(void) {
  make_folder();
  setenv("SGL_KERNEL_COMPAT_STATS", folder, 1);
  exits(parent_and_child);
  char path[400];
  EXPECT(files(".jsonl", path, sizeof path) == 2 && files("", path, sizeof path) == 4);
  int router = 0, bmm = 0, python = 0;
  DIR *list = opendir(folder);
  for (struct dirent *entry; (entry = readdir(list));) {
    if (!strstr(entry->d_name, ".jsonl"))
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    const char *text = text_of(path);
    router += strstr(text, "\"symbol\":\"dsv3_router_gemm\",\"face\":\"cxx\",\"calls\":{\"warn\":1}") != NULL;
    bmm += strstr(text, "\"symbol\":\"bmm_fp8\",\"face\":\"cxx\",\"calls\":{\"warn\":1}") != NULL;
    python += strstr(text, "\"symbol\":\"bmm_fp8\",\"face\":\"python\",\"calls\":{\"warn\":1}") != NULL;
    EXPECT(!strstr(text, "\"first\":0"));
  }
  closedir(list);
  EXPECT(router == 1 && bmm == 1 && python == 2);
  remove_folder();
}
static void forks(void) {
  world_child(count_files);
}

/* A process that is ended by SIGKILL has written what it had counted before the last interval. */
static void killed_later(void) {
  make_folder();
  setenv("SGL_KERNEL_COMPAT_STATS", folder, 1);
  pid_t child = fork();
  if (child == 0) {
    usage_interval_ms = 10;
    count_once(SERVE_BMM_FP8);
    for (;;)
      pause();
  }
  char path[400];
  for (int i = 0; i < 1000 && files(".prom", path, sizeof path) < 1; i++)
    usleep(10000);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  json_t *all = lines();
  EXPECT(calls_of(all, "bmm_fp8", "cxx", "warn") == 1);
  json_decref(all);
  remove_folder();
}
static void thread_writes(void) {
  world_child(killed_later);
}

/* The folder is made, its parent is not. */
static void makes_the_folder(void) {
  char path[400], below[100];
  make_folder();
  EXPECT(rmdir(folder) == 0);
  setenv("SGL_KERNEL_COMPAT_STATS", folder, 1);
  exits(parent_and_child);
  EXPECT(sgl_compat_usage_write(NULL, NULL, 0) == SGL_COMPAT_OK); /* this process has used nothing yet */
  EXPECT(files(".jsonl", path, sizeof path) == 2);
  snprintf(below, sizeof below, "%s/a/b", folder);
  char message[500];
  EXPECT(sgl_compat_usage_write(below, message, sizeof message) == SGL_COMPAT_ERROR_WRITE);
  EXPECT_CONTAINS(message, below);
  EXPECT_CONTAINS(message, "No such file or directory");
  count_once(SERVE_BMM_FP8);
  EXPECT(sgl_compat_usage_write(NULL, message, sizeof message) == SGL_COMPAT_OK);
  EXPECT(files(".jsonl", path, sizeof path) == 3);
  unsetenv("SGL_KERNEL_COMPAT_STATS"); /* read once */
  EXPECT(sgl_compat_usage_write(NULL, message, sizeof message) == SGL_COMPAT_OK);
  remove_folder();
}
static void nowhere(void) {
  char message[500];
  unsetenv("SGL_KERNEL_COMPAT_STATS");
  EXPECT(sgl_compat_usage_write(NULL, message, sizeof message) == SGL_COMPAT_ERROR_INVALID_ARGUMENT);
  EXPECT_CONTAINS(message, "SGL_KERNEL_COMPAT_STATS is not set");
  count_once(SERVE_BMM_FP8);
  EXPECT(sgl_compat_usage_write(NULL, message, sizeof message) == SGL_COMPAT_ERROR_INVALID_ARGUMENT);
}
static void folders(void) {
  world_child(makes_the_folder);
  world_child(nowhere);
}

/* For the test below, which runs it in a process of its own; by itself it says where it runs. */
static void one_use(void) {
  count_once(SERVE_BMM_FP8);
  CU_ASSERT_TRUE(usage_has_begun());
  printf("secure %lu\n", getauxval(AT_SECURE));
}

/* Runs a copy of this program, with this mode and owner, for one use; whether the kernel called it secure. Its status
 * is no matter: LeakSanitizer cannot look into such a program. */
static bool run_copy(uid_t owner, mode_t mode) {
  char command[9000], line[200];
  int secure = -1;
  snprintf(command, sizeof command, "cp /proc/%d/exe %s/copy", (int)getpid(), folder);
  EXPECT(system(command) == 0);
  snprintf(command, sizeof command, "%s/copy", folder);
  EXPECT(chown(command, owner, (gid_t)-1) == 0 && chmod(command, mode) == 0);
  snprintf(command, sizeof command, "SGL_KERNEL_COMPAT_STATS=%s/stats %s/copy one_use 2>/dev/null", folder, folder);
  FILE *out = popen(command, "r");
  while (out && fgets(line, sizeof line, out))
    sscanf(line, "secure %d", &secure);
  pclose(out);
  EXPECT(secure >= 0);
  return secure > 0;
}

/* A program with more rights than its caller does not write where the caller says. */
static void as_another_user(void) {
  char path[400], stats[100];
  make_folder();
  snprintf(stats, sizeof stats, "%s/stats", folder);
  EXPECT(chmod(folder, 0777) == 0);
  EXPECT(!run_copy(0, 0755));
  EXPECT(access(stats, F_OK) == 0); /* it would */
  snprintf(path, sizeof path, "rm -r %s", stats);
  EXPECT(system(path) == 0);
  EXPECT(!run_copy(65534, 04755) || access(stats, F_OK) != 0); /* not secure: mounted without setuid programs */
  snprintf(path, sizeof path, "rm -r %s", folder);
  EXPECT(system(path) == 0);
}
static void set_user_id(void) {
  if (geteuid() != 0)
    UNIT_SKIP("only root can make a set-user-ID program of another user");
  else
    world_child(as_another_user);
}

/* --- disks -------------------------------------------------------------------------------------------------------- */

static void write_twice(void *unused) {
  (void)unused;
  exits(parent_and_child);
}

/* The default action of the signal that comes with the limit would end the program. */
static void over_the_limit(void) {
  char path[400];
  make_folder();
  setenv("SGL_KERNEL_COMPAT_STATS", folder, 1);
  struct rlimit limit = {100, 100};
  EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  signal(SIGXFSZ, SIG_DFL);
  char message[500];
  count_once(SERVE_BMM_FP8);
  EXPECT(sgl_compat_usage_write(folder, message, sizeof message) == SGL_COMPAT_ERROR_WRITE);
  EXPECT_CONTAINS(message, "File too large");
  sigset_t pending;
  EXPECT(sigpending(&pending) == 0 && !sigismember(&pending, SIGXFSZ));
  EXPECT(files("", path, sizeof path) == 0);
  remove_folder();
}

/* One line for each process on stderr, and nothing in the folder. */
static void says_it_once(const char *folder_of_files, const char *why) {
  setenv("SGL_KERNEL_COMPAT_STATS", folder_of_files, 1);
  const char *text = world_stderr(write_twice, NULL);
  int said = 0;
  for (const char *at = text; (at = strstr(at, "sgl-kernel-compat: no statistics are written to ")); at++)
    said++;
  EXPECT(said == 2); /* parent and child */
  EXPECT_CONTAINS(text, why);
}

static bool put(const char *path, const char *text) {
  int file = open(path, O_WRONLY);
  bool good = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
  close(file);
  return good;
}

/* In a namespace of its own. A user or group that is not known there may make no files. */
static bool mount_on_folder(unsigned long flags, const char *options) {
  char users[60], groups[60];
  snprintf(users, sizeof users, "0 %u 1\n", (unsigned)geteuid());
  snprintf(groups, sizeof groups, "0 %u 1\n", (unsigned)getegid());
  return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && put("/proc/self/uid_map", users) &&
         put("/proc/self/setgroups", "deny") && put("/proc/self/gid_map", groups) &&
         mount("none", folder, "tmpfs", flags, options) == 0;
}

static void full_disk(void) {
  char path[400], filler[200];
  EXPECT(mount_on_folder(0, "size=16k"));
  snprintf(filler, sizeof filler, "%s/filler", folder);
  int file = open(filler, O_WRONLY | O_CREAT, 0600);
  static const char block[4096];
  while (write(file, block, sizeof block) > 0)
    ;
  close(file);
  says_it_once(folder, "No space left on device");
  EXPECT(files("", path, sizeof path) == 1); /* the filler */
}
static void read_only_disk(void) {
  char path[400];
  EXPECT(mount_on_folder(MS_RDONLY, ""));
  says_it_once(folder, "Read-only file system");
  EXPECT(files("", path, sizeof path) == 0);
}
static void no_folder(void) {
  says_it_once("/dev/null", "Not a directory");
}
static void can_mount(void) {
  EXPECT(mount_on_folder(0, ""));
}

static bool may_mount(void) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    can_mount();
    _exit(world_failures ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0;
}
static void limits(void) {
  world_child(over_the_limit);
  world_child(no_folder);
}
static void disks(void) {
  make_folder();
  if (may_mount()) {
    world_child(full_disk);
    world_child(read_only_disk);
  } else {
    UNIT_SKIP("no user namespace can be entered here, to mount a small disk in");
  }
  rmdir(folder);
}

static const struct unit_test tests[] = {
    {"threads", threads},         {"contents", contents},
    {"places", places},           {"forks", forks},
    {"limits", limits},           {"thread_writes", thread_writes},
    {"folders", folders},         {"disks", disks},
    {"shadow", shadow},           {"one_use", one_use},
    {"set_user_id", set_user_id},
};
UNIT_MAIN("shim.usage", tests)
