/* The statistics as files: JSON lines, and Prometheus' text format for the textfile collector of its node exporter.
 *
 * They are written when the process ends, when a program asks for it, and by a thread of their own if something
 * has changed, soon after the first use and then every half minute: servers stop their workers by SIGKILL, and workers
 * of Python's multiprocessing end by _exit.
 */
#include "shim/usage.h"

#include "shim/job.h"
#include "shim/policy_text.h"
#include "shim/quiet.h"
#include "shim/shadow.h"
#include "shim/text.h"

#include "compat_table.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SCHEMA "sgl-kernel-compat-usage/1"

/* --- whose they are ----------------------------------------------------------------------------------------------- */

/* What the environment says about the process. The thread that writes may not look: another one may be changing it. */
struct who {
  char host[65], job[256], rank[32];
  unsigned long long start; /* of the process; filled in when a file is written */
  const struct who *before; /* these stay: a thread may be reading them */
};
static const struct who nobody;
static _Atomic(const struct who *) whose = &nobody;

void usage_write_look(void) {
  struct who now;
  memset(&now, 0, sizeof now);
  const char *rank = job_rank();
  job_host(now.host, sizeof now.host);
  job_seed(now.job, sizeof now.job);
  snprintf(now.rank, sizeof now.rank, "%s", rank ? rank : "");
  const struct who *before = atomic_load_explicit(&whose, memory_order_acquire);
  if (strcmp(before->host, now.host) == 0 && strcmp(before->job, now.job) == 0 && strcmp(before->rank, now.rank) == 0)
    return;
  struct who *made = malloc(sizeof *made);
  if (made) {
    *made = now;
    made->before = before;
    atomic_store_explicit(&whose, made, memory_order_release);
  }
}

/* --- the two texts ------------------------------------------------------------------------------------------------ */

static void print_string(FILE *out, const char *name, const char *value) {
  fprintf(out, "\"%s\":", name);
  text_json(out, value);
}

static void print_header(FILE *out, const struct who *who, size_t lines) {
  char program[4096];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = '\0';
  fputs("{\"schema\":\"" SCHEMA "\",\"version\":\"" SGL_VERSION "\",\"package\":\"" COMPAT_PACKAGE "\",", out);
  print_string(out, "host", who->host);
  fprintf(out, ",\"pid\":%ld,\"start\":%llu,\"written\":%lld,\"lines\":%zu,", (long)getpid(), who->start,
          (long long)time(NULL), lines);
  print_string(out, "job", who->job);
  putc(',', out);
  print_string(out, "rank", who->rank);
  putc(',', out);
  print_string(out, "program", program);
  fputs("}\n", out);
}

static void print_caller(FILE *out, const struct usage_row *row) {
  if (row->caller && row->caller->file[0]) {
    fputs(",\"caller\":{", out);
    print_string(out, "file", row->caller->file);
    fprintf(out, ",\"offset\":\"0x%lx\"", row->caller->offset);
    if (row->caller->function[0]) {
      putc(',', out);
      print_string(out, "function", row->caller->function);
      fprintf(out, ",\"function_offset\":\"0x%lx\"", row->caller->function_offset);
    }
    putc('}', out);
  } else if (row->file && row->file[0]) {
    fputs(",\"caller\":{", out);
    print_string(out, "module", row->module);
    putc(',', out);
    print_string(out, "file", row->file);
    fprintf(out, ",\"line\":%u}", row->line);
  }
}

static void print_use(FILE *out, const struct usage_row *row) {
  const char *comma = "";
  putc('{', out);
  print_string(out, "symbol", row->symbol);
  putc(',', out);
  print_string(out, "face", row->face);
  fputs(",\"calls\":{", out);
  for (int stage = 0; stage < USAGE_STAGES; stage++)
    if (row->calls[stage]) {
      fprintf(out, "%s\"%s\":%llu", comma, policy_stage_name((sgl_compat_stage)stage),
              (unsigned long long)row->calls[stage]);
      comma = ",";
    }
  putc('}', out);
  if (row->samples)
    fprintf(out, ",\"samples\":%llu", (unsigned long long)row->samples);
  if (row->failed)
    fprintf(out, ",\"failed\":%llu", (unsigned long long)row->failed);
  fprintf(out, ",\"first\":%lu,", (unsigned long)row->first);
  print_string(out, "removed_in", row->removed_in);
  print_caller(out, row);
  fputs("}\n", out);
}

/* Also where no call has come: that shadow is on and compares nothing has to be seen. */
static void print_shadow(FILE *out, enum serve_kernel kernel) {
  struct shadow_counts n = shadow_get_counts(kernel);
  if (!shadow_is_on(kernel) && n.calls == 0)
    return;
  fprintf(out,
          "{\"shadow\":\"%s\",\"calls\":%llu,\"matches\":%llu,\"mismatches\":%llu,\"ignored\":%llu,"
          "\"over_budget\":%llu,\"errors\":%llu}\n",
          serve_name(kernel), (unsigned long long)n.calls, (unsigned long long)n.matches,
          (unsigned long long)n.mismatches, (unsigned long long)n.ignored, (unsigned long long)n.over_budget,
          (unsigned long long)n.errors);
}

/* What the installed package serves itself, out of our sight. */
static void print_uncounted(FILE *out, unsigned symbol) {
  bool python = usage_is_uncounted(symbol, SGL_COMPAT_CALL_PYTHON);
  bool by_operator = usage_is_uncounted(symbol, SGL_COMPAT_CALL_OPERATOR);
  if (python || by_operator)
    fprintf(out, "{\"not_counted\":\"%s\",\"faces\":[%s%s%s]}\n", compat_symbols[symbol].id,
            by_operator ? "\"operator\"" : "", by_operator && python ? "," : "", python ? "\"python\"" : "");
}

static void print_counts(FILE *out, const struct usage_row *rows, size_t count) {
  char name[128];
  uint64_t calls;
  for (size_t i = 0; i < count; i++)
    print_use(out, &rows[i]);
  for (size_t i = 0; usage_kernel_row(i, name, sizeof name, &calls); i++)
    fprintf(out, "{\"kernel\":\"%s\",\"calls\":%llu}\n", name, (unsigned long long)calls);
  for (int kernel = 0; kernel < SERVE_COUNT; kernel++)
    print_shadow(out, (enum serve_kernel)kernel);
  for (unsigned symbol = 0; symbol < COMPAT_SYMBOLS; symbol++)
    print_uncounted(out, symbol);
  if (usage_kernels_lost())
    fprintf(out, "{\"kernels_lost\":%llu}\n", (unsigned long long)usage_kernels_lost());
}

/* The header says how many lines follow, so that a copy that was cut is known; meanwhile new kernels may run. */
static void print_lines(FILE *out, const struct who *who, const struct usage_row *rows, size_t count) {
  char *text = NULL;
  size_t size = 0, lines = 0;
  FILE *body = open_memstream(&text, &size);
  if (body)
    print_counts(body, rows, count);
  if (body && fclose(body) == 0) {
    for (size_t i = 0; i < size; i++)
      lines += text[i] == '\n';
    print_header(out, who, lines);
    fwrite(text, 1, size, out);
  }
  free(text);
}

/* The module of a row for a label: a shared object's name, a Python module, or nothing. */
static const char *module_of(const struct usage_row *row) {
  if (!row->caller)
    return row->module ? row->module : "";
  const char *slash = strrchr(row->caller->file, '/');
  return slash ? slash + 1 : row->caller->file;
}

static bool is_one_series(const struct usage_row *a, const struct usage_row *b) {
  return strcmp(a->symbol, b->symbol) == 0 && strcmp(a->face, b->face) == 0 && strcmp(module_of(a), module_of(b)) == 0;
}

static void print_label(FILE *out, const char *name, const char *value) {
  fprintf(out, "%s=\"", name);
  text_prometheus(out, value);
  fputs("\",", out);
}

/* The labels that end a series. With host, pid and start, as the file's name: the collector refuses the same series
 * from two files, and those of processes that have ended are still there. */
static void print_process(FILE *out, const struct who *who, uint64_t value) {
  print_label(out, "job_id", who->job);
  print_label(out, "rank", who->rank);
  print_label(out, "host", who->host);
  fprintf(out, "pid=\"%ld\",start=\"%llu\"} %llu\n", (long)getpid(), who->start, (unsigned long long)value);
}

static void print_series(FILE *out, const struct who *who, const struct usage_row *row, int stage, uint64_t calls) {
  fputs("sgl_kernel_compat_calls_total{", out);
  print_label(out, "symbol", row->symbol);
  print_label(out, "face", row->face);
  print_label(out, "stage", policy_stage_name((sgl_compat_stage)stage));
  print_label(out, "removed_in", row->removed_in);
  print_label(out, "module", module_of(row));
  print_process(out, who, calls);
}

static void print_shadow_series(FILE *out, const struct who *who, enum serve_kernel kernel) {
  struct shadow_counts n = shadow_get_counts(kernel);
  const struct {
    const char *outcome;
    uint64_t count;
  } outcomes[] = {{"match", n.matches},
                  {"mismatch", n.mismatches},
                  {"ignored", n.ignored},
                  {"over_budget", n.over_budget},
                  {"error", n.errors}};
  if (!shadow_is_on(kernel) && n.calls == 0)
    return;
  for (size_t i = 0; i < sizeof outcomes / sizeof outcomes[0]; i++) {
    fputs("sgl_kernel_compat_shadow_total{", out);
    print_label(out, "symbol", serve_name(kernel));
    print_label(out, "outcome", outcomes[i].outcome);
    print_process(out, who, outcomes[i].count);
  }
}

static void print_metrics(FILE *out, const struct who *who, const struct usage_row *rows, size_t count) {
  fputs("# HELP sgl_kernel_compat_calls_total Uses of names that " COMPAT_PACKAGE
        " has dropped. Replays of captured graphs are not seen.\n"
        "# TYPE sgl_kernel_compat_calls_total counter\n",
        out);
  for (size_t i = 0; i < count; i++) {
    bool is_first = true;
    for (size_t k = 0; k < i && is_first; k++)
      is_first = !is_one_series(&rows[k], &rows[i]);
    for (int stage = 0; stage < USAGE_STAGES && is_first; stage++) {
      uint64_t calls = 0;
      for (size_t k = i; k < count; k++)
        calls += is_one_series(&rows[k], &rows[i]) ? rows[k].calls[stage] : 0;
      if (calls)
        print_series(out, who, &rows[i], stage, calls);
    }
  }
  fputs("# HELP sgl_kernel_compat_shadow_total Calls that were compared with the other side, by outcome.\n"
        "# TYPE sgl_kernel_compat_shadow_total counter\n",
        out);
  for (int kernel = 0; kernel < SERVE_COUNT; kernel++)
    print_shadow_series(out, who, (enum serve_kernel)kernel);
}

/* --- one file ----------------------------------------------------------------------------------------------------- */

/* Under its name only when it is whole and on the disk. */
static bool put_file(int folder, const char *name, const char *text, size_t size) {
  char temporary[400];
  snprintf(temporary, sizeof temporary, ".%s.new", name); /* this process's own: what is there is a left-over */
  unlinkat(folder, temporary, 0);
  int file = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file < 0)
    return false;
  bool good = quiet_write(file, text, size) && fsync(file) == 0;
  int problem = errno;
  if (close(file) != 0 && good) {
    good = false;
    problem = errno;
  }
  if (good && renameat(folder, temporary, folder, name) == 0)
    return true;
  problem = good ? errno : problem;
  unlinkat(folder, temporary, 0);
  errno = problem;
  return false;
}

typedef void print_function(FILE *out, const struct who *who, const struct usage_row *rows, size_t count);

static bool write_file(int folder, const char *process, const char *end, print_function *print,
                       const struct usage_row *rows, size_t count) {
  char *text = NULL, name[300];
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (!out)
    return false;
  struct who who = *atomic_load_explicit(&whose, memory_order_acquire);
  who.start = job_started();
  print(out, &who, rows, count);
  bool good = fclose(out) == 0 && size > 0;
  snprintf(name, sizeof name, "%s.%s", process, end);
  good = good && put_file(folder, name, text, size);
  int problem = errno;
  free(text);
  errno = problem;
  return good;
}

static bool write_both(int folder) {
  char process[200];
  size_t count;
  struct usage_row *rows = usage_rows(&count);
  if (!rows) {
    errno = ENOMEM;
    return false;
  }
  job_process_name(process, sizeof process);
  bool good = write_file(folder, process, "jsonl", print_lines, rows, count) &&
              write_file(folder, process, "prom", print_metrics, rows, count);
  int problem = errno;
  free(rows);
  errno = problem;
  return good;
}

static bool write_into(const char *path) {
  if (mkdir(path, 0777) != 0 && errno != EEXIST)
    return false;
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return false;
  bool good = write_both(folder);
  int problem = errno;
  if (good)
    fsync(folder); /* not every file system can */
  close(folder);
  errno = problem;
  return good;
}

/* --- when --------------------------------------------------------------------------------------------------------- */

/* The environment's folder, read at the first use of the library; NULL: none. */
static _Atomic(char *) folder_of_environment;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below and the files */
static uint64_t written_total;
static const struct who *written_whose;
static bool written, told;
unsigned usage_first_ms = 125, usage_interval_ms = 30000;

/* With the outcomes: a comparison that was under way when a file was written ends later. */
static uint64_t shadow_total(void) {
  uint64_t total = 0;
  for (int kernel = 0; kernel < SERVE_COUNT; kernel++) {
    struct shadow_counts n = shadow_get_counts((enum serve_kernel)kernel);
    total += n.calls + n.matches + n.mismatches + n.ignored + n.over_budget + n.errors;
  }
  return total;
}

static bool write_quietly(const char *path) {
  sigset_t before = quiet_begin();
  bool good = write_into(path);
  quiet_end(&before);
  return good;
}

/* Into the environment's folder. A failure is told once. */
static void write_if_changed(void) {
  const char *path = atomic_load_explicit(&folder_of_environment, memory_order_acquire);
  if (!path)
    return;
  pthread_mutex_lock(&lock);
  uint64_t total = usage_total() + shadow_total();
  const struct who *who = atomic_load_explicit(&whose, memory_order_acquire);
  if (!written || total != written_total || who != written_whose) {
    if (write_quietly(path)) {
      written = true;
      written_total = total;
      written_whose = who;
    } else if (!told) {
      told = true;
      char why[128], line[4400];
      int length = snprintf(line, sizeof line, "sgl-kernel-compat: no statistics are written to %s: %s\n", path,
                            strerror_r(errno, why, sizeof why));
      TEMP_FAILURE_RETRY(write(STDERR_FILENO, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1));
    }
  }
  pthread_mutex_unlock(&lock);
}

/* Soon at first: a pool of workers is ended by a signal when its work is done. */
static void *write_now_and_then(void *unused) {
  for (unsigned ms = usage_first_ms;; ms *= 2) {
    ms = ms < usage_interval_ms ? ms : usage_interval_ms;
    struct timespec interval = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&interval, NULL);
    write_if_changed();
  }
  return unused;
}

/* It takes none of the program's signals. Without a thread the files come at the end. */
static void start_thread(void) {
  sigset_t all, before;
  pthread_t thread;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread, NULL, write_now_and_then, NULL) == 0)
    pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void usage_write_begin(void) {
  const char *value = secure_getenv("SGL_KERNEL_COMPAT_STATS");
  char *path = value && value[0] ? job_path(value) : NULL;
  if (!path)
    return;
  usage_write_look();
  char *none = NULL;
  if (!atomic_compare_exchange_strong(&folder_of_environment, &none, path))
    free(path); /* the parent's, before a fork */
  start_thread();
}

/* The parent's thread is not here, and the lock may have been its. Nothing is written until this process counts. */
void usage_write_forked(void) {
  static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  memcpy(&lock, &fresh, sizeof lock);
  written = told = false;
  shadow_clear_counts();
  free(atomic_exchange(&folder_of_environment, NULL));
}

__attribute__((destructor)) static void write_at_end(void) {
  int saved = errno;
  if (atomic_load_explicit(&folder_of_environment, memory_order_acquire))
    usage_write_look();
  write_if_changed();
  errno = saved;
}

sgl_compat_status sgl_compat_usage_write(const char *folder, char *message, size_t message_size) {
  int saved = errno;
  sgl_compat_status status = SGL_COMPAT_OK;
  bool is_used = usage_has_begun();
  if (folder || is_used) {
    usage_begin();
    usage_write_look();
  }
  const char *path = folder ? folder : atomic_load_explicit(&folder_of_environment, memory_order_acquire);
  const char *named = folder || is_used ? path : secure_getenv("SGL_KERNEL_COMPAT_STATS");
  if (!named || !named[0]) {
    snprintf(message, message_size,
             "sgl_compat_usage_write: no folder is named, and SGL_KERNEL_COMPAT_STATS is not set");
    status = SGL_COMPAT_ERROR_INVALID_ARGUMENT;
  } else if (path) {
    pthread_mutex_lock(&lock);
    bool good = write_quietly(path);
    int problem = errno;
    pthread_mutex_unlock(&lock);
    char why[128];
    if (!good) {
      snprintf(message, message_size, "sgl_compat_usage_write: no statistics are written to %s: %s", path,
               strerror_r(problem, why, sizeof why));
      status = SGL_COMPAT_ERROR_WRITE;
    }
  }
  errno = saved;
  return status;
}
