/* Files of statistics: when they are written, in threads, forks and programs of other users; whole, or not at all. */
#include "tests/shim/usage_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

extern unsigned usage_first_ms, usage_interval_ms;

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

/* AddressSanitizer's malloc does not survive a fork while another thread is in it, as the one that writes is when it
 * starts: waits until that sleeps. */
static void let_thread_sleep(void) {
#if defined(__SANITIZE_ADDRESS__)
  char path[400], line[200];
  bool sleeps = false;
  for (int i = 0; i < 1000 && !sleeps; i++, usleep(1000)) {
    DIR *list = opendir("/proc/self/task");
    for (struct dirent *entry; list && !sleeps && (entry = readdir(list));) {
      snprintf(path, sizeof path, "/proc/self/task/%.20s/syscall", entry->d_name);
      FILE *file = fopen(path, "r");
      sleeps = file && fgets(line, sizeof line, file) && atoi(line) == SYS_clock_nanosleep;
      if (file)
        fclose(file);
    }
    closedir(list);
  }
#endif
}

static void parent_and_child(void) {
  usage_first_ms = usage_interval_ms; /* a fork while the thread works leaves what that has allocated */
  count_once(SERVE_DSV3_ROUTER_GEMM);
  void *place = sgl_compat_usage_python("bmm_fp8", SGL_COMPAT_CALL_PYTHON, "warn", "m", "f", 1);
  let_thread_sleep();
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

/* exec keeps the pid and the start of the process, but what was counted before is told before. */
static void becomes_another(void) {
  count_once(SERVE_DSV3_ROUTER_GEMM);
  EXPECT(sgl_compat_usage_write(NULL, NULL, 0) == SGL_COMPAT_OK);
  EXPECT(freopen("/dev/null", "w", stdout) != NULL);
  execl("/proc/self/exe", "test_usage_files", "one_use", (char *)NULL);
  world_failures++;
}
static void two_programs(void) {
  char path[400];
  make_folder();
  setenv("SGL_KERNEL_COMPAT_STATS", folder, 1);
  exits(becomes_another);
  EXPECT(files(".jsonl", path, sizeof path) == 2 && files("", path, sizeof path) == 4);
  remove_folder();
}
static void exec_keeps(void) {
  world_child(two_programs);
}

static json_t *header_of(const char *path) {
  char *text = text_of(path);
  strtok(text, "\n");
  return json_loads(text, 0, NULL);
}

/* Who the process is, is known before the first use, also to the thread; and at the end again. */
static void is_told_late(void) {
  usage_interval_ms = 10;
  usage_begin();
  char path[400] = "";
  for (int i = 0; i < 1000 && files(".prom", path, sizeof path) < 1; i++)
    usleep(10000);
  files(".jsonl", path, sizeof path);
  json_t *header = header_of(path);
  EXPECT(json_string_length(json_object_get(header, "host")) > 0);
  EXPECT_STRINGS(json_string_value(json_object_get(header, "job")), "SGL_KERNEL_COMPAT_JOB=nightly");
  EXPECT_STRINGS(json_string_value(json_object_get(header, "rank")), "");
  json_decref(header);
  setenv("RANK", "7", 1);
}
static void idle(void) {
  char path[400];
  make_folder();
  setenv("SGL_KERNEL_COMPAT_STATS", folder, 1);
  setenv("SGL_KERNEL_COMPAT_JOB", "nightly", 1);
  unsetenv("RANK");
  exits(is_told_late);
  EXPECT(files(".jsonl", path, sizeof path) == 1);
  json_t *header = header_of(path);
  EXPECT_STRINGS(json_string_value(json_object_get(header, "rank")), "7");
  json_decref(header);
  remove_folder();
}
static void who(void) {
  world_child(idle);
}

/* A process that is ended by SIGKILL has written what it had counted before the last interval. */
static void killed_later(void) {
  make_folder();
  setenv("SGL_KERNEL_COMPAT_STATS", folder, 1);
  pid_t child = fork();
  if (child == 0) {
    count_once(SERVE_BMM_FP8); /* soon after it, half a minute is too long */
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
/* The folder is that of the first use, wherever the program goes. */
static void goes_away(void) {
  count_once(SERVE_BMM_FP8);
  EXPECT(chdir("/") == 0);
}
static void relative(void) {
  char path[400];
  make_folder();
  EXPECT(chdir(folder) == 0);
  setenv("SGL_KERNEL_COMPAT_STATS", ".", 1);
  exits(goes_away);
  EXPECT(files(".jsonl", path, sizeof path) == 1);
  remove_folder();
}
static void folders(void) {
  world_child(relative);
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

/* The thread tries again and again. */
static void tries(void) {
  usage_interval_ms = 1;
  for (int i = 0; i < 20; i++) {
    count_once(SERVE_BMM_FP8);
    usleep(2000);
  }
}
static void write_often(void *unused) {
  (void)unused;
  exits(tries);
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
  EXPECT(world_lines(world_stderr(write_often, NULL)) == 1);
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

static const struct unit_test tests[] = {{"forks", forks},     {"thread_writes", thread_writes},
                                         {"folders", folders}, {"exec_keeps", exec_keeps},
                                         {"who", who},         {"one_use", one_use},
                                         {"limits", limits},   {"set_user_id", set_user_id},
                                         {"disks", disks}};
UNIT_MAIN("shim.usage_files", tests)
