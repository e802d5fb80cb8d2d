/* Where a library of the CUDA toolkit is looked for: NVRTC or cuBLASLt. Who looks brings an opener: library.c loads
 * what it finds, sgl-migrate doctor only looks at files.
 *
 * Searched in this order, in each place first for the major version of the driver (its cubins are sure to load, its
 * libraries sure to start), then for 13 and 12:
 *   1. the file that the library's environment variable names; nothing else is tried then
 *   2. what the process has loaded already
 *   3. beside the CUDA runtime that the process has loaded, as the wheels of PyTorch lay it out
 *   4. by name (LD_LIBRARY_PATH, ldconfig)
 *   5. CUDA_HOME and CUDA_PATH, then /usr/local/cuda and /usr/local/cuda-*, in lib64, lib and targets/x86_64-linux/lib
 */
#include "internal.h"
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OLDEST_MAJOR = 12, NEWEST_MAJOR = 13, PATH_SIZE = 4096 };

const struct jit_library_name jit_library_nvrtc = {
    .title = "NVRTC",
    .file = "libnvrtc.so.",
    .variable = "SGL_KERNEL_JIT_NVRTC",
    .wheel = "cuda_nvrtc",
    .status = SGL_JIT_ERROR_NO_COMPILER,
    .missing =
        "no usable cached kernel and no NVRTC (libnvrtc.so.13 or .12): install nvidia-cuda-nvrtc, set CUDA_HOME, or "
        "name the file in SGL_KERNEL_JIT_NVRTC"};

struct majors {
  int list[3];
  int count;
};

static struct majors majors_for(int driver_version) {
  struct majors m = {.count = 0};
  int own = driver_version / 1000;
  if (own >= OLDEST_MAJOR)
    m.list[m.count++] = own;
  for (int major = NEWEST_MAJOR; major >= OLDEST_MAJOR; major--)
    if (major != own)
      m.list[m.count++] = major;
  return m;
}

/* A search under way: `place` is what it looks at. */
struct search {
  const struct jit_library_name *name;
  struct majors majors;
  const struct jit_library_opener *opener;
  jit_search_watch *watch;
  void *user;
  const char *place;
  char broken[512]; /* why the first file that is there cannot be loaded */
};

static void say(const struct search *s, const char *path, const char *problem) {
  if (s->watch)
    s->watch(s->user, s->place, path, problem);
}

/* Not just missing? The loader begins with the name that it was given when there is no such file, and with the path, or
 * with the name of another library that is needed, when there is one. Its words are in the user's language. */
static bool is_there(const char *path, const char *problem) {
  return strchr(path, '/') ? access(path, F_OK) == 0 : strncmp(problem, path, strlen(path)) != 0;
}

static void *open_file(struct search *s, const char *path, bool loaded) {
  const char *problem = NULL;
  void *library = s->opener->open(s->opener->user, path, loaded, &problem);
  if (problem && !s->broken[0] && is_there(path, problem))
    snprintf(s->broken, sizeof s->broken, "%s", problem);
  say(s, path, library || problem ? problem : "not loaded");
  return library;
}

/* Tries the library in a folder, or by name alone when it is NULL. */
static void *open_in(struct search *s, const char *folder, bool loaded) {
  for (int i = 0; i < s->majors.count; i++) {
    char path[PATH_SIZE];
    int length = snprintf(path, sizeof path, "%s%s%s%d", folder ? folder : "", folder ? "/" : "", s->name->file,
                          s->majors.list[i]);
    void *library = length < PATH_SIZE ? open_file(s, path, loaded) : NULL;
    if (library)
      return library;
  }
  return NULL;
}

static void *open_in_toolkit(struct search *s, const char *root) {
  static const char *const folders[] = {"lib64", "lib", "targets/x86_64-linux/lib"};
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    char folder[PATH_SIZE];
    int length = snprintf(folder, sizeof folder, "%s/%s", root, folders[i]);
    void *library = length < PATH_SIZE ? open_in(s, folder, false) : NULL;
    if (library)
      return library;
  }
  return NULL;
}

static void *open_in_named_toolkit(struct search *s, const char *variable) {
  const char *root = secure_getenv(variable);
  s->place = variable;
  if (root && *root)
    return open_in_toolkit(s, root);
  say(s, NULL, "not set");
  return NULL;
}

/* The wheels for CUDA 13 keep everything in nvidia/cu13/lib, those for CUDA 12 have a folder for each library beside
 * nvidia/cuda_runtime/lib. */
static void *open_beside_runtime(struct search *s) {
  char folder[PATH_SIZE], other[PATH_SIZE];
  s->place = "beside the CUDA runtime";
  if (!s->opener->runtime(s->opener->user, folder, sizeof folder)) {
    say(s, NULL, "no CUDA runtime is loaded");
    return NULL;
  }
  void *library = open_in(s, folder, false);
  if (library)
    return library;
  int length = snprintf(other, sizeof other, "%s/../../%s/lib", folder, s->name->wheel);
  return length < PATH_SIZE ? open_in(s, other, false) : NULL;
}

static void *open_in_default_toolkits(struct search *s) {
  glob_t found;
  s->place = "/usr/local";
  void *library = open_in_toolkit(s, "/usr/local/cuda");
  if (library || glob("/usr/local/cuda-*", 0, NULL, &found) != 0)
    return library;
  for (size_t i = found.gl_pathc; i-- > 0 && !library;) /* sorted by name: the newest is last */
    library = open_in_toolkit(s, found.gl_pathv[i]);
  globfree(&found);
  return library;
}

sgl_jit_status jit_library_search(const struct jit_library_name *name, int driver_version,
                                  const struct jit_library_opener *opener, void **library, jit_search_watch *watch,
                                  void *user, struct jit_message m) {
  struct search s = {name, majors_for(driver_version), opener, watch, user, name->variable, ""};
  const char *explicit_path = secure_getenv(name->variable);
  if (explicit_path && *explicit_path) {
    const char *reason = NULL;
    *library = opener->open(opener->user, explicit_path, false, &reason);
    say(&s, explicit_path, *library || reason ? reason : "unknown");
    if (!*library)
      return jit_fail(m, name->status, "%s names no usable library: %s", name->variable,
                      reason ? reason : explicit_path);
    return SGL_JIT_OK;
  }
  say(&s, NULL, "not set");
  s.place = "loaded already";
  *library = open_in(&s, NULL, true);
  if (!*library)
    *library = open_beside_runtime(&s);
  if (!*library) {
    s.place = "by name";
    *library = open_in(&s, NULL, false);
  }
  if (!*library)
    *library = open_in_named_toolkit(&s, "CUDA_HOME");
  if (!*library)
    *library = open_in_named_toolkit(&s, "CUDA_PATH");
  if (!*library)
    *library = open_in_default_toolkits(&s);
  if (*library)
    return SGL_JIT_OK;
  if (s.broken[0])
    return jit_fail(m, name->status, "%s cannot be loaded: %s; repair it, or name another file in %s", name->title,
                    s.broken, name->variable);
  return jit_fail(m, name->status, "%s", name->missing);
}
