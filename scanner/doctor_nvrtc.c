/* The NVRTC that the JIT would find in a process that has imported this environment's torch: the JIT's own search, on
 * files that are only looked at. */
#include "jit/internal.h"
#include "scanner/doctor.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUILTINS "libnvrtc-builtins.so."

/* The folder of the CUDA runtime that torch loads, else of one that lies beside torch. */
static bool find_runtime(void *user, char *folder, size_t size) {
  const struct doctor *doctor = user;
  const struct audit_run *run = &doctor->run;
  const struct audit_object *best = NULL;
  for (size_t i = 0; i < run->objects_count; i++) {
    const struct audit_object *object = &run->objects[i];
    const char *slash = object->location ? strrchr(object->location, '/') : NULL;
    if (object->fault || !slash || strncmp(slash + 1, "libcudart.so.", 13) != 0)
      continue;
    bool loaded = false;
    for (size_t k = 0; k < run->objects_count && !loaded; k++)
      loaded =
          !run->objects[k].fault && strncmp(run->objects[k].path, "torch/lib/", 10) == 0 && audit_reaches(run, k, i);
    if (loaded || !best)
      best = object;
    if (loaded)
      break;
  }
  return best && snprintf(folder, size, "%.*s", (int)(strrchr(best->location, '/') - best->location), best->location) <
                     (int)size;
}

/* The path without links and .. in its folder; owned by the caller. The file's own name says which one was asked for.
 */
static char *plain(const char *path) {
  char real[PATH_MAX], *folder = scan_format("%.*s", (int)(strrchr(path, '/') - path), path);
  char *text = scan_format("%s%s", realpath(folder, real) ? real : folder, strrchr(path, '/'));
  free(folder);
  return text;
}

static void *look(void *user, const char *path, bool loaded, const char **problem) {
  const struct doctor *doctor = user;
  if (loaded)
    return NULL;
  if (!strchr(path, '/'))
    return doctor_find_library(doctor, path);
  if (access(path, R_OK) == 0)
    return plain(path);
  if (errno != ENOENT && errno != ENOTDIR)
    *problem = strerror(errno);
  return NULL;
}

/* "12.8" of the file that a link leads to, libnvrtc.so.12.8.93, or of the distribution that has it; owned by the
 * caller, NULL: not known. */
static char *find_release(const struct doctor *doctor, const char *path) {
  char real[PATH_MAX], *release = NULL;
  const char *version = realpath(path, real) ? strstr(strrchr(real, '/'), ".so.") : NULL;
  version = version && strchr(version + 4, '.') ? version + 4 : NULL;
  for (size_t i = 0; i < doctor->packages_count && !version; i++) {
    const struct doctor_package *package = &doctor->packages[i];
    const char *site = doctor->sites[package->site].path;
    size_t length = strlen(site);
    if (strncmp(path, site, length) != 0 || path[length] != '/')
      continue;
    for (size_t k = 0; k < package->record.rows_count && !version; k++)
      if (strcmp(package->record.rows[k].path, path + length + 1) == 0)
        version = package->version;
  }
  const char *dot = version ? strchr(version, '.') : NULL;
  if (dot)
    release = scan_format("%.*s", (int)(dot - version + 1) + (int)strspn(dot + 1, "0123456789"), version);
  return release;
}

/* The releases of the builtins beside the file. */
static char *list_builtins(const char *path, size_t *count) {
  char real[PATH_MAX];
  struct doctor_list list = {0};
  const char *file = realpath(path, real) ? real : path, *slash = strrchr(file, '/');
  char *folder = scan_format("%.*s", slash ? (int)(slash - file) : 0, file);
  size_t names_count;
  char **names = doctor_names_in(folder, "", &names_count);
  for (size_t i = 0; i < names_count; i++) {
    if (strncmp(names[i], BUILTINS, strlen(BUILTINS)) == 0) {
      const char *version = names[i] + strlen(BUILTINS), *dot = strchr(version, '.');
      if (dot && !strchr(dot + 1, '.')) /* the name that is opened, not the file behind it */
        doctor_list_add(&list, version);
    }
    free(names[i]);
  }
  free(names);
  free(folder);
  *count = list.count;
  return doctor_list_take(&list);
}

static char *how_to_get_nvrtc(const struct doctor *doctor) {
  int major = doctor->torch_cuda ? atoi(doctor->torch_cuda) : doctor->driver_cuda / 1000;
  return scan_format("pip install %s, set CUDA_HOME, or name the file in SGL_KERNEL_JIT_NVRTC",
                     major == 12 ? "nvidia-cuda-nvrtc-cu12" : "nvidia-cuda-nvrtc");
}

static void check_found(struct doctor *doctor, const char *path, enum doctor_level level) {
  size_t count;
  char *release = find_release(doctor, path), *builtins = list_builtins(path, &count);
  if (count == 0)
    doctor_say(doctor, level, "nvrtc-builtins", how_to_get_nvrtc(doctor),
               "the JIT finds %s without its other half, " BUILTINS "%s, so nothing can be compiled", path,
               release ? release : "*");
  else if (release && !strstr(builtins, release))
    doctor_say(doctor, level, "nvrtc-builtins", how_to_get_nvrtc(doctor),
               "the JIT finds %s of release %s, but the builtins beside it are of %s, so nothing can be compiled", path,
               release, builtins);
  else if (release && (atoi(release) < 12 || strcmp(release, "12.0") == 0))
    doctor_say(doctor, level, "nvrtc-old", how_to_get_nvrtc(doctor), "the JIT finds %s of release %s, 12.1 is needed",
               path, release);
  else if (release && doctor->driver_cuda && atoi(release) > doctor->driver_cuda / 1000)
    doctor_say(doctor, DOCTOR_WARNING, "nvrtc-new", how_to_get_nvrtc(doctor),
               "the JIT finds %s of release %s, the driver knows CUDA %d: what it compiles may not load", path, release,
               doctor->driver_cuda / 1000);
  else
    doctor_say(doctor, DOCTOR_FACT, "nvrtc", NULL, "the JIT finds %s%s%s, builtins %s", path,
               release ? ", release " : "", release ? release : "", builtins);
  free(release);
  free(builtins);
}

void doctor_check_nvrtc(struct doctor *doctor) {
  const struct jit_library_opener opener = {look, find_runtime, doctor};
  char text[512] = "";
  void *path = NULL;
  sgl_jit_status status = jit_library_search(&jit_library_nvrtc, doctor->driver_cuda, &opener, &path, NULL, NULL,
                                             (struct jit_message){text, sizeof text, NULL});
  /* Who does not use the JIT needs none. */
  enum doctor_level level = doctor->shim_active && doctor->torch_cuda ? DOCTOR_PROBLEM
                            : doctor->shim                            ? DOCTOR_WARNING
                                                                      : DOCTOR_FACT;
  if (status == SGL_JIT_OK)
    check_found(doctor, path, level);
  else
    doctor_say(doctor, level, "nvrtc-missing", level == DOCTOR_FACT ? NULL : how_to_get_nvrtc(doctor),
               "the JIT has no compiler: %s", text);
  free(path);
}
