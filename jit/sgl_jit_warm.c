/* sgl-jit warm, sgl-jit pack: kernels ahead of their first use. */
#include "sgl_jit_tool.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One kernel for one kind of GPU. */
struct job {
  const sgl_jit_kernel_spec *spec;
  struct jit_target target;
  int device;       /* -1: none is needed */
  char devices[64]; /* "cuda:0,1": all that have this target */
};

struct jobs {
  struct job *list;
  size_t count;
  int width; /* of the longest kernel name */
};

static void add_job(struct jobs *jobs, const struct job *job) {
  int width = (int)strlen(jit_spec_text(job->spec).text);
  jobs->width = width > jobs->width ? width : jobs->width;
  jobs->list = tool_realloc(jobs->list, (jobs->count + 1) * sizeof *jobs->list);
  jobs->list[jobs->count++] = *job;
}

static struct jobs jobs_for_targets(const struct tool_work *work, const struct tool_options *options) {
  struct jobs jobs = {NULL, 0, 0};
  for (size_t t = 0; t < options->targets.count; t++)
    for (size_t i = 0; i < work->count; i++) {
      struct job job = {.spec = &work->specs[i], .device = -1};
      snprintf(job.target.name, sizeof job.target.name, "%s", options->targets.list[t]);
      add_job(&jobs, &job);
    }
  return jobs;
}

/* GPUs of one target share an entry: the first of them loads it. */
static struct jobs jobs_for_devices(const struct tool_work *work, const struct jit_driver *driver, int only) {
  struct jobs jobs = {NULL, 0, 0};
  for (int d = 0; d < driver->device_count; d++) {
    const struct jit_device *device = &driver->devices[d];
    struct job job = {.device = d, .target = jit_target_exact(device->major, device->minor)};
    size_t length = (size_t)snprintf(job.devices, sizeof job.devices, "cuda:%d", d);
    bool first = only < 0 || only == d;
    for (int e = 0; e < driver->device_count && only < 0; e++) {
      bool same = e != d && driver->devices[e].major == device->major && driver->devices[e].minor == device->minor;
      first = first && !(same && e < d);
      if (same && length < sizeof job.devices)
        length += (size_t)snprintf(job.devices + length, sizeof job.devices - length, ",%d", e);
    }
    for (size_t i = 0; first && i < work->count; i++) {
      job.spec = &work->specs[i];
      add_job(&jobs, &job);
    }
  }
  return jobs;
}

/* --- what is said --- */

static bool has_progress(void) {
  const char *terminal = getenv("TERM");
  return isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
}

static void say_progress(const struct jobs *jobs, size_t i) {
  if (!has_progress())
    return;
  fflush(stdout);
  fprintf(stderr, "\r\x1b[K[%zu/%zu] %s for %s", i + 1, jobs->count, jit_spec_text(jobs->list[i].spec).text,
          jobs->list[i].target.name);
}

static void say_result(const struct jobs *jobs, const struct job *job, bool good, const char *result) {
  if (has_progress())
    fprintf(stderr, "\r\x1b[K");
  tool_print(jit_spec_text(job->spec).text, TOOL_PLAIN, jobs->width + 2);
  tool_print(job->target.name, TOOL_PLAIN, 9);
  tool_print(job->devices, TOOL_PLAIN, job->device >= 0 ? (int)strlen(job->devices) + 2 : 0);
  tool_print(result, good ? TOOL_GREEN : TOOL_RED, 0);
  putchar('\n');
  fflush(stdout);
}

static sgl_jit_counters count(void) {
  sgl_jit_counters now;
  sgl_jit_get_counters(&now, sizeof now);
  return now;
}

/* --- warm --- */

/* A kernel that was compiled for a GPU runs, whether it could be kept or not; to keep it was the task. */
static void why_not_kept(char *text, size_t size) {
  struct jit_folder folder;
  jit_folder_find(JIT_FOLDER_CACHE, &folder);
  int opened = jit_folder_open(&folder, true);
  if (opened >= 0)
    close(opened);
  if (!folder.path[0])
    snprintf(text, size, "compiled, but not kept: no cache folder: %s", folder.problem);
  else
    snprintf(text, size, "compiled, but not kept: the cache folder %.400s (%s): %s", folder.path, folder.source,
             folder.problem[0] ? folder.problem : "it cannot be written, or the disk is full");
}

static bool warm_one(const struct job *job, char *result, size_t size) {
  char why[1000];
  struct jit_message m = {why, sizeof why, NULL};
  sgl_jit_counters before = count();
  sgl_jit_status status =
      job->device < 0 ? jit_kernel_to_cache(job->spec, &job->target, m) : jit_warm_kernel(job->spec, job->device, m);
  sgl_jit_counters after = count();
  bool compiled = after.compiles > before.compiles, kept = after.bytes_written > before.bytes_written;
  if (status == SGL_JIT_OK && compiled && !kept) {
    why_not_kept(why, sizeof why);
    status = SGL_JIT_ERROR_CACHE;
  }
  if (status != SGL_JIT_OK)
    snprintf(result, size, "failed: %s", why);
  else if (compiled)
    snprintf(result, size, "compiled in %.0f ms", (double)(after.compile_ns - before.compile_ns) / 1e6);
  else
    snprintf(result, size, "%s", after.prebuilt_hits > before.prebuilt_hits ? "prebuilt" : "cached");
  return status == SGL_JIT_OK;
}

static int warm_all(const struct jobs *jobs) {
  int status = STATUS_OK;
  for (size_t i = 0; i < jobs->count; i++) {
    char result[1100];
    say_progress(jobs, i);
    bool good = warm_one(&jobs->list[i], result, sizeof result);
    say_result(jobs, &jobs->list[i], good, result);
    status = good ? status : STATUS_BAD;
  }
  return status;
}

int tool_warm(const struct tool_options *options) {
  char why[512];
  struct jobs jobs = {NULL, 0, 0};
  if (options->device >= 0 && options->targets.count)
    tool_usage("--device and --target exclude each other: what --target compiles needs no GPU");
  tool_check_targets(options);
  struct tool_work work = tool_work(options);
  int status = STATUS_OK;
  if (work.count == 0) {
    tool_error("no kernel is named: nothing to do");
  } else if (options->targets.count) {
    jobs = jobs_for_targets(&work, options);
  } else {
    const struct jit_driver *driver;
    if (jit_driver(&driver, (struct jit_message){why, sizeof why, NULL}) != SGL_JIT_OK) {
      tool_error("no GPU to compile for: %s; name the kind of GPU with --target, as in --target sm_90a", why);
      status = STATUS_BAD;
    } else if (options->device >= driver->device_count) {
      tool_usage("--device %d: the driver has %d GPU%s, counted from 0", options->device, driver->device_count,
                 driver->device_count == 1 ? "" : "s");
    } else {
      jobs = jobs_for_devices(&work, driver, options->device);
    }
  }
  if (status == STATUS_OK)
    status = warm_all(&jobs);
  free(jobs.list);
  free(work.specs);
  return status;
}

/* --- pack: the folder --- */

/* The folder to be written, and the one that it takes the place of. */
struct pack {
  char path[4096], made[4128], old[4160]; /* PATH, PATH.new-XXXXXX, PATH.new-XXXXXX.old */
  const char *left;                       /* of the two that are not in place, the one to be removed */
  bool replaces;
};

/* False, and an error, when something else is in the way. */
static bool may_replace(const char *path) {
  struct jit_file file;
  int opened = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *list = opened >= 0 ? jit_folder_list(opened) : NULL;
  bool good = list != NULL;
  if (!good)
    tool_error("--output %s: is in the way and no folder that can be replaced: %s", path, strerror(errno));
  while (good && jit_folder_next(list, &file)) {
    good = file.kind == JIT_FILE_ENTRY && S_ISREG(file.stat.st_mode);
    if (!good)
      tool_error("--output %s: not replaced, since it has '%s', which pack did not write; name another folder", path,
                 file.name);
  }
  if (list)
    closedir(list);
  if (opened >= 0)
    close(opened);
  return good;
}

static bool is_cache_folder(const char *path) {
  struct jit_folder cache;
  struct stat one, other;
  jit_folder_find(JIT_FOLDER_CACHE, &cache);
  return stat(cache.path, &one) == 0 && stat(path, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

static bool look_at_output(const char *output, struct pack *pack) {
  struct stat s;
  size_t length = strlen(output);
  while (length > 1 && output[length - 1] == '/')
    length--;
  if (length == 0 || length >= sizeof pack->path || (length == 1 && *output == '/'))
    tool_usage("--output '%s': the path of a folder is needed", output);
  snprintf(pack->path, sizeof pack->path, "%.*s", (int)length, output);
  const char *last = strrchr(pack->path, '/');
  last = last ? last + 1 : pack->path;
  if (strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
    tool_usage("--output '%s': the folder's own name is needed, since it is made anew", output);
  if (is_cache_folder(pack->path))
    tool_usage("--output '%s': this is the cache folder, which sgl-jit warm fills", output);
  pack->replaces = lstat(pack->path, &s) == 0;
  return !pack->replaces || may_replace(pack->path);
}

static bool fault(const char *what, const char *path) {
  tool_error("%s: cannot %s: %s; nothing was changed", path, what, strerror(errno));
  return false;
}

/* Readable by all, whatever the umask: it is made to be shipped. */
static bool write_entry(int folder, const char *name, const char *content, size_t size) {
  int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file < 0)
    return false;
  bool good = fchmod(file, 0644) == 0;
  for (size_t done = 0; good && done < size;) {
    ssize_t n = TEMP_FAILURE_RETRY(write(file, content + done, size - done));
    good = n > 0;
    done += good ? (size_t)n : 0;
  }
  good = good && fsync(file) == 0;
  return close(file) == 0 && good;
}

/* The entries of a folder that pack made, and the folder. */
static bool remove_folder(const char *path) {
  struct jit_file file;
  int opened = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *list = opened >= 0 ? jit_folder_list(opened) : NULL;
  while (list && jit_folder_next(list, &file))
    if (file.kind == JIT_FILE_ENTRY)
      unlinkat(opened, file.name, 0);
  if (list)
    closedir(list);
  if (opened >= 0)
    close(opened);
  return rmdir(path) == 0;
}

/* In one step, except on file systems whose renames know no flags. Afterwards `left` is what was there before. */
static bool put_in_place(struct pack *pack) {
  unsigned flags = pack->replaces ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  if (renameat2(AT_FDCWD, pack->made, AT_FDCWD, pack->path, flags) == 0)
    return true;
  if (errno != EINVAL && errno != ENOSYS)
    return false;
  if (!pack->replaces)
    return rename(pack->made, pack->path) == 0;
  snprintf(pack->old, sizeof pack->old, "%s.old", pack->made);
  if (rename(pack->path, pack->old) != 0)
    return false;
  if (rename(pack->made, pack->path) != 0) {
    int problem = errno;
    rename(pack->old, pack->path);
    errno = problem;
    return false;
  }
  pack->left = pack->old;
  return true;
}

static bool place(struct pack *pack) {
  if (pack->replaces && !may_replace(pack->path))
    return false;
  if (put_in_place(pack))
    return true;
  if (pack->replaces || (errno != EEXIST && errno != ENOTEMPTY))
    return fault("put it in place", pack->path);
  pack->replaces = true; /* another pack was faster */
  return place(pack);
}

struct packed {
  struct jit_image *images; /* one a job */
  size_t total;             /* bytes of the files */
};

static bool write_all(const struct jobs *jobs, struct packed *packed, const char *path) {
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  bool good = folder >= 0 && fchmod(folder, 0755) == 0;
  for (size_t i = 0; good && i < jobs->count; i++) {
    size_t size;
    struct jit_entry_name name;
    struct jit_cache_key key = jit_cache_key(jobs->list[i].spec, &jobs->list[i].target,
                                             jit_pdl_on(jit_target_capability(jobs->list[i].target.name)));
    char *content = jit_entry_encode(key.text, &packed->images[i], &size);
    jit_entry_name(key.text, &name);
    errno = ENOMEM;
    good = content && write_entry(folder, name.text, content, size);
    packed->total += good ? size : 0;
    free(content);
  }
  int problem = errno;
  good = good && fsync(folder) == 0;
  if (folder >= 0)
    close(folder);
  errno = problem;
  return good;
}

/* A signal that stops the command comes before or after. */
static bool write_folder(const struct jobs *jobs, struct packed *packed, struct pack *pack) {
  snprintf(pack->made, sizeof pack->made, "%s.new-XXXXXX", pack->path);
  if (!mkdtemp(pack->made))
    return fault("make a folder beside it", pack->path);
  pack->left = pack->made;
  bool good = write_all(jobs, packed, pack->made);
  if (!good) {
    fault("write", pack->made);
  } else {
    good = place(pack);
  }
  if ((!good || pack->replaces) && !remove_folder(pack->left)) {
    tool_error("%s: cannot be removed: %s; remove it by hand", pack->left, strerror(errno));
    good = false;
  }
  return good;
}

static bool write_undisturbed(const struct jobs *jobs, struct packed *packed, struct pack *pack) {
  sigset_t stop, before;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGHUP);
  sigprocmask(SIG_BLOCK, &stop, &before);
  bool good = write_folder(jobs, packed, pack);
  sigprocmask(SIG_SETMASK, &before, NULL);
  return good;
}

/* --- pack: the kernels --- */

static bool compile_one(const struct job *job, struct jit_image *image, char *result, size_t size) {
  char why[1000];
  sgl_jit_counters before = count();
  sgl_jit_status status = jit_kernel_image(job->spec, &job->target, image, (struct jit_message){why, sizeof why, NULL});
  if (status == SGL_JIT_OK)
    snprintf(result, size, "compiled in %.0f ms", (double)(count().compile_ns - before.compile_ns) / 1e6);
  else
    snprintf(result, size, "failed: %s", why);
  return status == SGL_JIT_OK;
}

static int pack_all(const struct jobs *jobs, struct packed *packed, struct pack *pack) {
  size_t failed = 0;
  for (size_t i = 0; i < jobs->count; i++) {
    char result[1100];
    say_progress(jobs, i);
    bool good = compile_one(&jobs->list[i], &packed->images[i], result, sizeof result);
    say_result(jobs, &jobs->list[i], good, result);
    failed += !good;
  }
  if (failed) {
    tool_error("%s: not written, since %zu of %zu kernels failed", pack->path, failed, jobs->count);
    return STATUS_BAD;
  }
  if (!write_undisturbed(jobs, packed, pack))
    return STATUS_BAD;
  tool_print(pack->path, TOOL_PLAIN, 0);
  printf(": %zu kernel%s, %s\n", jobs->count, jobs->count == 1 ? "" : "s", tool_size(packed->total).text);
  return STATUS_OK;
}

int tool_pack(const struct tool_options *options) {
  struct pack pack;
  int status = STATUS_BAD;
  if (!options->targets.count || !options->output)
    tool_usage("pack needs --target and --output; see sgl-jit pack --help");
  tool_check_targets(options);
  struct tool_work work = tool_work(options);
  if (work.count == 0)
    tool_usage("no kernel is named: nothing to pack");
  struct jobs jobs = jobs_for_targets(&work, options);
  struct packed packed = {calloc(jobs.count, sizeof *packed.images), 0};
  if (!packed.images)
    tool_error("out of memory");
  else if (look_at_output(options->output, &pack))
    status = pack_all(&jobs, &packed, &pack);
  for (size_t i = 0; packed.images && i < jobs.count; i++)
    free(packed.images[i].data);
  free(packed.images);
  free(jobs.list);
  free(work.specs);
  return status;
}
