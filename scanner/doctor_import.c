/* --import: the environment's own Python imports torch and the kernel in a process that may run for a while only, and
 * tells what it has. Nothing that it prints is believed but as text. */
#include "scanner/doctor.h"
#include "scanner/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 120
#define PAUSE 50 /* ms between two looks at whether the process has ended */
#define ANSWER_MOST ((size_t)16 << 20)
#define ERRORS_KEPT ((size_t)4096)
#define DEEPBIND 8 /* RTLD_DEEPBIND of dlfcn.h */

/* argv: the descriptor for the answer, and [[id, [[module, name], ...], operator], ...]. */
static const char script[] =
    "import importlib, json, os, sys\n"
    "if sys.path and sys.path[0] == '': del sys.path[0]\n"
    "out, names, package = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]\n"
    "answer = {'flags': sys.getdlopenflags(), 'names': {}}\n"
    "def take(name):\n"
    "    try:\n"
    "        return importlib.import_module(name)\n"
    "    except BaseException as e:\n"
    "        answer[name + '_error'] = f'{type(e).__name__}: {e}'[-8000:]\n"
    "torch = take('torch')\n"
    "if torch is not None:\n"
    "    answer['torch'] = str(torch.__version__)\n"
    "kernel = take(package)\n"
    "if kernel is not None:\n"
    "    answer['kernel'] = str(getattr(kernel, '__file__', None) or 'a module without a file')\n"
    "if torch is not None:\n"
    "    try:\n"
    "        if torch.cuda.is_available(): answer['capability'] = list(torch.cuda.get_device_capability())\n"
    "    except Exception as e:\n"
    "        answer['cuda_error'] = f'{type(e).__name__}: {e}'[-8000:]\n"
    "answer['shim'] = 'sgl_kernel_compat' in sys.modules\n"
    "def who(places):\n"
    "    for module, name in places:\n"
    "        try:\n"
    "            value = getattr(importlib.import_module(module), name)\n"
    "        except Exception:\n"
    "            continue\n"
    "        file = getattr(getattr(value, '__code__', None), 'co_filename', '')\n"
    "        return 'shim' if 'sgl_kernel_compat' in file else 'kernel'\n"
    "for id, places, op in names:\n"
    "    has = False\n"
    "    try:\n"
    "        has = bool(op and torch is not None and hasattr(getattr(torch.ops, package), op))\n"
    "    except Exception:\n"
    "        pass\n"
    "    answer['names'][id] = [who(places) if kernel is not None else None, has]\n"
    "try:\n"
    "    with open('/proc/self/maps') as maps:\n"
    "        answer['mapped'] = sorted({line.split(None, 5)[5].strip() for line in maps if line.count('/')})\n"
    "except OSError:\n"
    "    answer['mapped'] = []\n"
    "data = json.dumps(answer).encode()\n"
    "while data: data = data[os.write(out, data):]\n"
    "os._exit(0)\n"; /* what others do at exit is not asked for */

static char *list_names(const struct doctor *doctor) {
  json_t *names = json_array();
  for (unsigned i = 0; i < doctor->catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &doctor->catalog->symbols[i];
    json_t *places = json_array();
    for (unsigned k = 0; k < symbol->python_count; k++)
      json_array_append_new(places, json_pack("[s, s]", symbol->python[k].module, symbol->python[k].name));
    json_array_append_new(names, json_pack("[s, o, s]", symbol->id, places, symbol->op_name));
  }
  char *text = json_dumps(names, JSON_COMPACT);
  json_decref(names);
  if (!text)
    scan_out_of_memory();
  return text;
}

/* --- the process -------------------------------------------------------------------------------------------------- */

struct child {
  pid_t pid;
  int answer, errors; /* what is read */
  char *text;         /* the answer */
  size_t size;
  char tail[ERRORS_KEPT]; /* the end of its standard error */
  size_t tail_size;
  bool late;
  int status;
};

static bool start(const struct doctor *doctor, struct child *child) {
  int answer[2], errors[2];
  if (pipe2(answer, O_CLOEXEC) != 0)
    return false;
  if (pipe2(errors, O_CLOEXEC) != 0) {
    close(answer[0]);
    close(answer[1]);
    return false;
  }
  char *names = list_names(doctor), number[16];
  snprintf(number, sizeof number, "%d", answer[1]);
  child->pid = fork();
  if (child->pid == 0) {
    int null = open("/dev/null", O_RDWR);
    setpgid(0, 0); /* so that what it starts ends with it */
    dup2(null, 0);
    dup2(null, 1);
    dup2(errors[1], 2);
    fcntl(answer[1], F_SETFD, 0);
    setenv("SGL_KERNEL_COMPAT_WARN", "off", 1);
    setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    execl(doctor->python, doctor->python, "-c", script, number, names, doctor->catalog->library.package, (char *)NULL);
    _exit(127);
  }
  if (child->pid > 0)
    setpgid(child->pid, child->pid); /* whoever of the two is first */
  free(names);
  close(answer[1]);
  close(errors[1]);
  child->answer = answer[0];
  child->errors = errors[0];
  if (child->pid < 0) {
    close(answer[0]);
    close(errors[0]);
  }
  return child->pid > 0;
}

/* Takes what is there; false at its end. */
static bool take_answer(struct child *child) {
  char buffer[1 << 16];
  ssize_t got = read(child->answer, buffer, sizeof buffer);
  if (got <= 0)
    return got < 0 && errno == EINTR;
  if (child->size + (size_t)got > ANSWER_MOST)
    return false;
  child->text = scan_alloc(child->text, child->size + (size_t)got);
  memcpy(child->text + child->size, buffer, (size_t)got);
  child->size += (size_t)got;
  return true;
}

static bool take_errors(struct child *child) {
  char buffer[4096];
  ssize_t got = read(child->errors, buffer, sizeof buffer);
  if (got <= 0)
    return got < 0 && errno == EINTR;
  size_t size = (size_t)got;
  if (child->tail_size + size > sizeof child->tail) {
    size_t drop = child->tail_size + size - sizeof child->tail;
    memmove(child->tail, child->tail + drop, child->tail_size - drop);
    child->tail_size -= drop;
  }
  memcpy(child->tail + child->tail_size, buffer, size);
  child->tail_size += size;
  return true;
}

static long seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long)now.tv_sec;
}

/* Reads until the process is done or the time is over, then ends all that it has started: those may hold the pipes. */
static void wait_for(struct child *child) {
  struct pollfd ends[] = {{child->answer, POLLIN, 0}, {child->errors, POLLIN, 0}};
  long end = seconds() + SECONDS;
  bool done = false;
  while (!done) {
    child->late = seconds() >= end;
    if (child->late)
      kill(-child->pid, SIGKILL);
    pid_t got = waitpid(child->pid, &child->status, child->late ? 0 : WNOHANG);
    done = got == child->pid || (got < 0 && errno == ECHILD); /* whoever ignores SIGCHLD cannot wait */
    if (done)
      kill(-child->pid, SIGKILL);
    int wait = done ? 0 : PAUSE; /* what it has written before its end is read once more */
    while (poll(ends, 2, wait) > 0) {
      if (ends[0].revents && !take_answer(child))
        ends[0].fd = -1;
      if (ends[1].revents && !take_errors(child))
        ends[1].fd = -1;
      if (seconds() >= end)
        break;
      wait = 0;
    }
  }
  close(child->answer);
  close(child->errors);
}

/* --- what it says ------------------------------------------------------------------------------------------------- */

/* The line of a long message that says the cause, as `explain` knows it, not what follows from it; else the first one.
 * Owned by the caller. */
static char *cause_of(const struct doctor *doctor, const char *error) {
  char *first = NULL, *best = NULL;
  for (const char *line = error; *line && !best; line += strcspn(line, "\n"), line += *line == '\n') {
    char *text = scan_format("%.*s", (int)strcspn(line, "\n"), line);
    struct explanation explanation;
    explain(doctor->catalog, text, &explanation);
    if (explanation.faults_count && !explanation.faults[0].consequence)
      best = scan_format("%s", text);
    if (!first && text[strcspn(text, ":") + (strchr(text, ':') != NULL)])
      first = scan_format("%s", text);
    explain_free(&explanation);
    free(text);
  }
  if (best)
    free(first);
  return best ? best : first ? first : scan_format("%s", error);
}

/* A message of the loader or Python, with what `explain` makes of it. */
static void say_error(struct doctor *doctor, const char *id, const char *what, const char *message) {
  struct explanation explanation;
  char *error = cause_of(doctor, message);
  explain(doctor->catalog, error, &explanation);
  const struct explained_fault *fault = explanation.faults_count ? &explanation.faults[0] : NULL;
  doctor_say(doctor, DOCTOR_PROBLEM, id, fault ? scan_format("%s", fault->remedy) : NULL, "%s: %s%s%.*s", what, error,
             fault ? "; " : "", fault ? (int)strlen(fault->cause) - (fault->cause[0] != '\0') : 0,
             fault ? fault->cause : "");
  explain_free(&explanation);
  free(error);
}

static void say_death(struct doctor *doctor, struct child *child) {
  char *tail = scan_format("%.*s", (int)child->tail_size, child->tail);
  for (size_t end = strlen(tail); end && (tail[end - 1] == '\n' || tail[end - 1] == ' '); end--)
    tail[end - 1] = '\0';
  const char *line = strrchr(tail, '\n') ? strrchr(tail, '\n') + 1 : tail;
  char *how = child->late ? scan_format("was not done after %d seconds", SECONDS)
              : WIFSIGNALED(child->status)
                  ? scan_format("died of signal %d (%s)", WTERMSIG(child->status), strsignal(WTERMSIG(child->status)))
                  : scan_format("ended with status %d", WEXITSTATUS(child->status));
  char *what = scan_format("the import in %s %s", doctor->python, how);
  say_error(doctor, "import-died", what, *line ? line : "it printed nothing");
  free(what);
  free(how);
  free(tail);
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* One CUDA library each: the files that are mapped, and whether there is more than one. */
static void say_mapped(struct doctor *doctor, const json_t *mapped) {
  static const char *const libraries[] = {"libcudart", "libnvrtc.so", "libcublas.so", "libtorch_cpu.so",
                                          "libsgl_kernel_compat.so"};
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
    struct doctor_list files = {0};
    for (size_t k = 0; k < json_array_size(mapped); k++) {
      const char *path = json_string_value(json_array_get(mapped, k));
      if (path && strncmp(base_name(path), libraries[i], strlen(libraries[i])) == 0)
        doctor_list_add(&files, path);
    }
    size_t count = files.count;
    char *list = doctor_list_take(&files);
    if (count > 1)
      doctor_say(doctor, DOCTOR_PROBLEM, "import-twice",
                 doctor_remedy(doctor, "libcudart.so.12: cannot open shared object file"),
                 "the process has loaded %zu of %s: %s", count, libraries[i], list);
    else if (count)
      doctor_say(doctor, DOCTOR_FACT, "import-mapped", NULL, "the process has loaded %s", list);
    free(list);
  }
}

/* Names that only this project's kernels serve, which want a newer GPU. */
static void check_own_kernels(struct doctor *doctor, unsigned capability) {
  struct doctor_list old = {0};
  for (unsigned i = 0; i < doctor->catalog->symbols_count; i++) {
    const struct catalog_route *route = catalog_jit_route(&doctor->catalog->symbols[i]);
    char *word = route && route->limits.sm_least > capability
                     ? scan_format("%s (sm_%u)", doctor->catalog->symbols[i].id, route->limits.sm_least)
                     : NULL;
    if (word)
      doctor_list_add(&old, word);
    free(word);
  }
  size_t count = old.count;
  char *names = doctor_list_take(&old);
  if (count)
    doctor_say(doctor, DOCTOR_WARNING, "gpu-old", NULL,
               "this GPU is sm_%u; this project's kernels for %s do not run on it", capability, names);
  free(names);
}

/* Can what the kernel's libraries have run on this GPU: its own machine code, that of an older minor version, or PTX?
 */
static void check_gpu(struct doctor *doctor, unsigned major, unsigned minor) {
  const char *package = doctor->catalog->library.package;
  const struct audit_run *run = &doctor->run;
  for (size_t i = 0; i < run->objects_count; i++) {
    const struct audit_object *object = &run->objects[i];
    bool runs = false;
    if (object->fault || !object->code_count || strncmp(object->path, package, strlen(package)) != 0)
      continue;
    for (size_t k = 0; k < object->code_count; k++) {
      const struct audit_code *code = &object->code[k];
      unsigned own = major * 10 + minor;
      if (code->suffix == 'a')
        runs |= code->arch == own;
      else
        runs |= code->arch <= own && (code->ptx || code->arch / 10 == major);
    }
    if (!runs)
      doctor_say(doctor, DOCTOR_WARNING, "gpu-code", doctor_remedy(doctor, "no kernel image is available"),
                 "%s has no code for this GPU, sm_%u%u: its operators fail when they are called", object->path, major,
                 minor);
  }
  check_own_kernels(doctor, major * 10 + minor);
}

static void say_answer(struct doctor *doctor, const json_t *answer) {
  const char *package = doctor->catalog->library.package;
  char *key = scan_format("%s_error", package);
  const char *torch = json_string_value(json_object_get(answer, "torch_error"));
  const char *kernel = json_string_value(json_object_get(answer, key));
  const char *cuda = json_string_value(json_object_get(answer, "cuda_error"));
  const char *file = json_string_value(json_object_get(answer, "kernel"));
  if (torch)
    say_error(doctor, "import-torch", "import torch fails", torch);
  if (kernel) {
    char *what = scan_format("import %s fails", package);
    say_error(doctor, "import-kernel", what, kernel);
    free(what);
  }
  if (cuda)
    say_error(doctor, "import-cuda", "torch finds no GPU", cuda);
  if (file)
    doctor_say(doctor, DOCTOR_FACT, "import", NULL, "import %s gives %s; the shim is %sactive in that process", package,
               file, json_is_true(json_object_get(answer, "shim")) ? "" : "not ");
  if (json_integer_value(json_object_get(answer, "flags")) & DEEPBIND)
    doctor_say(
        doctor, DOCTOR_WARNING, "import-deepbind", scan_format("call sys.setdlopenflags without os.RTLD_DEEPBIND"),
        "Python loads libraries with RTLD_DEEPBIND here: they find their own definitions before a preloaded shim");
  say_mapped(doctor, json_object_get(answer, "mapped"));
  const json_t *capability = json_object_get(answer, "capability");
  if (json_array_size(capability) == 2)
    check_gpu(doctor, (unsigned)json_integer_value(json_array_get(capability, 0)),
              (unsigned)json_integer_value(json_array_get(capability, 1)));
  free(key);
}

void doctor_import(struct doctor *doctor) {
  struct child child = {0};
  if (!doctor->python) {
    doctor_say(doctor, DOCTOR_WARNING, "import-python", scan_format("give the folder above its lib"),
               "--import: no python3 belongs to this environment, so nothing was run");
    return;
  }
  if (!start(doctor, &child)) {
    doctor_say(doctor, DOCTOR_WARNING, "import-python", NULL, "--import: %s cannot be started: %s", doctor->python,
               strerror(errno));
    return;
  }
  wait_for(&child);
  doctor->imported = child.size ? json_loadb(child.text, child.size, 0, NULL) : NULL;
  free(child.text);
  if (json_is_object(doctor->imported))
    say_answer(doctor, doctor->imported);
  else
    say_death(doctor, &child);
}
