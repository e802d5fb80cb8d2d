#include "shim/call_log.h"

#include "shim/include/sgl_kernel_compat.h"
#include "shim/job.h"
#include "shim/quiet.h"
#include "shim/text.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The newest lines are kept: a file that is full takes the place of the one before it. */
size_t call_log_bytes = (size_t)32 << 20;

_Atomic enum call_log call_log_state = CALL_LOG_UNKNOWN;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static char *folder;
static int file = -1;
static size_t length; /* of the file */

/* --- the file ----------------------------------------------------------------------------------------------------- */

static void say(const char *what, const char *why) {
  char line[4600];
  int size = snprintf(line, sizeof line, "sgl-kernel-compat: %.300s%s%.4000s\n", what, why ? ": " : "", why ? why : "");
  ssize_t told = TEMP_FAILURE_RETRY(write(STDERR_FILENO, line, (size_t)size));
  (void)told;
}

/* After the first failure it is off, in this process. */
static void give_up(const char *path) {
  char what[4300], why[128];
  const char *problem = strerror_r(errno, why, sizeof why);
  snprintf(what, sizeof what, "calls are not logged any more, %.250s", path);
  say(what, problem);
  atomic_store(&call_log_state, CALL_LOG_OFF);
}

static void name_file(char *path, size_t size, const char *end) {
  char process[200];
  job_process_name(process, sizeof process);
  snprintf(path, size, "%s/sgl-kernel-compat-%s.calls%s", folder, process, end);
}

/* A file of this name is nobody else's: in /tmp it may be a trap. */
static bool open_file(void) {
  char path[4400], old[4400];
  name_file(path, sizeof path, "");
  name_file(old, sizeof old, ".old");
  if (file >= 0) {
    close(file);
    file = -1;
    if (rename(path, old) != 0)
      return false;
  }
  mkdir(folder, 0777);
  file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  length = 0;
  return file >= 0;
}

/* A line is there whole or not at all. */
static bool put_line(const char *line, size_t size) {
  if ((file < 0 || length + size > call_log_bytes) && !open_file())
    return false;
  size_t done = 0;
  for (ssize_t written = 0; done < size && written >= 0; done += written > 0 ? (size_t)written : 0)
    written = TEMP_FAILURE_RETRY(write(file, line + done, size - done));
  if (done == size) {
    length += size;
    return true;
  }
  int problem = errno;
  if (done > 0 && ftruncate(file, (off_t)length) != 0)
    problem = errno;
  errno = problem;
  return false;
}

static void forked(void) {
  static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  memcpy(&lock, &fresh, sizeof lock);
  if (file >= 0)
    close(file); /* the parent's */
  file = -1;
}

static void read_environment(void) {
  const char *value = secure_getenv("SGL_KERNEL_COMPAT_LOG");
  static const char *const folders[] = {"SGL_KERNEL_COMPAT_LOG_DIR", "SGL_KERNEL_COMPAT_STATS", "TMPDIR"};
  bool on = value && strcmp(value, "calls") == 0;
  if (value && value[0] && !on && strcmp(value, "off") != 0)
    say("SGL_KERNEL_COMPAT_LOG is neither calls nor off; taking off", NULL);
  const char *path = "/tmp";
  for (size_t i = sizeof folders / sizeof folders[0]; i-- > 0;) {
    const char *named = secure_getenv(folders[i]);
    path = named && named[0] ? named : path;
  }
  folder = on ? job_path(path) : NULL;
  if (folder)
    pthread_atfork(NULL, NULL, forked);
  atomic_store(&call_log_state, folder ? CALL_LOG_ON : CALL_LOG_OFF);
}

bool call_log_begin(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  int saved = errno;
  pthread_once(&once, read_environment);
  errno = saved;
  return atomic_load(&call_log_state) == CALL_LOG_ON;
}

/* --- a line ------------------------------------------------------------------------------------------------------- */

static void print_list(FILE *out, const char *name, const int64_t *values, int count) {
  fprintf(out, ",\"%s\":[", name);
  for (int i = 0; i < count; i++)
    fprintf(out, "%s%lld", i ? "," : "", (long long)values[i]);
  putc(']', out);
}

static void print_device(FILE *out, const sgl_jit_tensor *tensor) {
  if (tensor->device_type == SGL_JIT_DEVICE_CUDA)
    fprintf(out, "\"device\":\"cuda:%d\"", (int)tensor->device_index);
  else
    fprintf(out, "\"device\":\"%s\"", tensor->device_type == SGL_JIT_DEVICE_CPU ? "cpu" : "other");
}

static void print_tensor(FILE *out, const char *name, const sgl_jit_tensor *tensor) {
  fprintf(out, "{\"name\":\"%s\"", name);
  if (tensor) {
    fprintf(out, ",\"dtype\":\"%s\",", serve_dtype_name(tensor->dtype));
    print_device(out, tensor);
    print_list(out, "shape", tensor->sizes, tensor->ndim);
    print_list(out, "strides", tensor->strides, tensor->ndim);
  }
  putc('}', out);
}

static void print_tensors(FILE *out, const struct torch_abi *torch, enum serve_kernel kernel, void *const tensors[]) {
  sgl_jit_tensor view;
  void *stream;
  if (serve_view(torch, tensors[serve_input(kernel)], &view)) {
    print_device(out, &view);
    if (view.device_type == SGL_JIT_DEVICE_CUDA && torch_abi_cuda_stream(view.device_index, &stream))
      fprintf(out, ",\"stream\":\"0x%llx\"", (unsigned long long)(uintptr_t)stream);
    putc(',', out);
  }
  fputs("\"tensors\":[", out);
  for (int i = 0; i < serve_tensors(kernel); i++) {
    if (i)
      putc(',', out);
    print_tensor(out, serve_tensor_name(kernel, i), serve_view(torch, tensors[i], &view) ? &view : NULL);
  }
  putc(']', out);
}

void call_log_line(const char *symbol, const char *face, const char *outcome, const char *message, const char *more) {
  int saved = errno;
  char *line = NULL;
  size_t size = 0;
  struct timespec now;
  FILE *out = open_memstream(&line, &size);
  if (!out)
    return;
  clock_gettime(CLOCK_REALTIME, &now);
  fprintf(out, "{\"time\":%lld.%06ld,\"thread\":%ld,\"symbol\":\"%s\",\"face\":\"%s\",\"outcome\":\"%s\"",
          (long long)now.tv_sec, now.tv_nsec / 1000, (long)syscall(SYS_gettid), symbol, face, outcome);
  if (message) {
    fputs(",\"message\":", out);
    text_json(out, message);
  }
  fprintf(out, "%s%s}\n", more ? "," : "", more ? more : "");
  if (fclose(out) == 0) {
    sigset_t before = quiet_begin();
    pthread_mutex_lock(&lock);
    char path[4400];
    if (atomic_load(&call_log_state) == CALL_LOG_ON && !put_line(line, size)) {
      int problem = errno;
      name_file(path, sizeof path, "");
      errno = problem;
      give_up(path);
    }
    pthread_mutex_unlock(&lock);
    quiet_end(&before);
  }
  free(line);
  errno = saved;
}

void call_log_write(const struct torch_abi *torch, enum serve_kernel kernel, void *const tensors[], const char *face,
                    const char *outcome, const char *message) {
  int saved = errno;
  char *more = NULL;
  size_t size = 0;
  FILE *out = torch ? open_memstream(&more, &size) : NULL;
  if (out)
    print_tensors(out, torch, kernel, tensors);
  if (!out || fclose(out) == 0)
    call_log_line(serve_name(kernel), face, outcome, message, more);
  free(more);
  errno = saved;
}

int sgl_compat_call_log(const char *symbol, const char *face, const char *outcome, const char *message,
                        const char *more) {
  if (!call_log_is_on())
    return 0;
  if (symbol && face && outcome)
    call_log_line(symbol, face, outcome, message, more);
  return 1;
}
