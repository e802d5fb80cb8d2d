/* sgl-jit info: what the library finds on this machine, in this environment. */
#include "sgl_jit_tool.h"
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the library --- */

#define TEXT(x) #x
#define SONAME(major) "libsgl_kernel_jit.so." TEXT(major)
static const char soname[] = SONAME(SGL_JIT_VERSION_MAJOR);

static bool open_library(struct tool_library *library, const char *name, const char *source) {
  struct link_map *map;
  void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (!handle)
    return false;
  const char *(*version)(void) = NULL;
  *(void **)&version = dlsym(handle, "sgl_jit_version");
  snprintf(library->path, sizeof library->path, "%s", dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : name);
  snprintf(library->version, sizeof library->version, "%s", version ? version() : "");
  library->source = source;
  return true; /* stays loaded: it cannot be unloaded */
}

bool tool_find_library(struct tool_library *library) {
  static struct tool_library found;
  static bool looked, there;
  char own[PATH_MAX], beside[PATH_MAX];
  if (!looked) {
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = '\0';
    for (int up = 0; up < 2 && strrchr(own, '/'); up++) /* PREFIX/bin/sgl-jit */
      *strrchr(own, '/') = '\0';
    there = open_library(&found, soname, "found by name");
    if (snprintf(beside, sizeof beside, "%s/lib/%s", own, soname) < (int)sizeof beside && !there) {
      there = open_library(&found, beside, "beside sgl-jit; programs find it only with an rpath or LD_LIBRARY_PATH");
      if (!there)
        snprintf(found.path, sizeof found.path, "%s", beside);
    }
    jit_library_file = found.path;
    looked = true;
  }
  *library = found;
  return there;
}

/* --- gathering --- */

struct tried {
  const char *place;
  char *path, *problem; /* NULL: none */
};

struct search {
  struct tried *tried;
  size_t count;
};

struct facts {
  struct tool_library library;
  bool library_found;
  const char *backend;
  const struct jit_driver *driver; /* NULL: driver_problem */
  char driver_path[PATH_MAX], driver_problem[512];
  bool nvrtc_found;
  struct jit_compiler_facts nvrtc;
  char nvrtc_problem[512], builtins_version[32];
  struct search nvrtc_search;
  bool blas_found;
  struct jit_blas_facts blas;
  char blas_problem[512];
  struct search blas_search;
  struct tool_folder folders[JIT_FOLDER_COUNT];
  char *advice[16];
  size_t advice_count;
};

static char *copy(const char *text) {
  size_t size = text ? strlen(text) + 1 : 0;
  return text ? memcpy(tool_realloc(NULL, size), text, size) : NULL;
}

__attribute__((format(printf, 2, 3))) static void advise(struct facts *facts, const char *format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (facts->advice_count < sizeof facts->advice / sizeof facts->advice[0])
    facts->advice[facts->advice_count++] = copy(text);
}

static void keep_tried(void *user, const char *place, const char *path, const char *problem) {
  struct search *search = user;
  size_t length = path ? strlen(path) : 0;
  search->tried = tool_realloc(search->tried, (search->count + 1) * sizeof *search->tried);
  if (problem && path && strncmp(problem, path, length) == 0 && strncmp(problem + length, ": ", 2) == 0)
    problem += length + 2; /* dlerror repeats it */
  if (problem && strcmp(problem, "cannot open shared object file: No such file or directory") == 0)
    problem = "not there";
  search->tried[search->count++] = (struct tried){place, copy(path), copy(problem)};
}

static void forget_tried(struct search *search) {
  for (size_t i = 0; i < search->count; i++) {
    free(search->tried[i].path);
    free(search->tried[i].problem);
  }
  free(search->tried);
}

static void look_at_library(struct facts *facts) {
  facts->library_found = tool_find_library(&facts->library);
  if (!facts->library_found)
    advise(facts, "%s was not found: install it beside sgl-jit (make install), run ldconfig, or set LD_LIBRARY_PATH",
           soname);
  else if (strcmp(facts->library.version, sgl_jit_version()) != 0)
    advise(facts,
           "the library is version %s and sgl-jit is %s: kernels of one may be useless to the other; install "
           "both from one release",
           facts->library.version, sgl_jit_version());
  const char *backend = getenv("SGL_KERNEL_JIT_BACKEND");
  facts->backend = sgl_jit_get_backend() == SGL_JIT_BACKEND_REFERENCE ? "reference" : "auto";
  if (backend && *backend && strcmp(backend, "auto") != 0 && strcmp(backend, "reference") != 0) {
    facts->backend = "invalid";
    advise(facts, "SGL_KERNEL_JIT_BACKEND is '%.100s', so every call fails: set it to auto or reference, or unset it",
           backend);
  }
}

static void look_at_driver(struct facts *facts) {
  Dl_info info;
  struct jit_message m = {facts->driver_problem, sizeof facts->driver_problem, NULL};
  if (jit_driver(&facts->driver, m) != SGL_JIT_OK) {
    facts->driver = NULL;
    advise(facts, "no GPU can be used here: see nvidia-smi, and in a container --gpus; kernels for other machines can "
                  "be made with sgl-jit warm --target and sgl-jit pack");
    return;
  }
  if (dladdr(*(void *const *)&facts->driver->cuInit, &info) && info.dli_fname)
    snprintf(facts->driver_path, sizeof facts->driver_path, "%s", info.dli_fname);
  for (int d = 0; d < facts->driver->device_count; d++)
    if (facts->driver->devices[d].major < JIT_MIN_MAJOR)
      advise(facts, "cuda:%d has compute capability %d.%d, which these kernels do not run on: %d.0 is needed", d,
             facts->driver->devices[d].major, facts->driver->devices[d].minor, JIT_MIN_MAJOR);
}

/* "13.0.88", or as much of it as the file's name has. */
static void find_builtins_version(struct facts *facts) {
  static const char name[] = "/libnvrtc-builtins.so.";
  char real[PATH_MAX];
  const char *file = realpath(facts->nvrtc.builtins, real) ? strrchr(real, '/') : NULL;
  if (file && strncmp(file, name, sizeof name - 1) == 0)
    snprintf(facts->builtins_version, sizeof facts->builtins_version, "%.30s", file + sizeof name - 1);
  else /* NVRTC opens no others */
    snprintf(facts->builtins_version, sizeof facts->builtins_version, "%d.%d", facts->nvrtc.major, facts->nvrtc.minor);
}

static void look_at_nvrtc(struct facts *facts) {
  const struct jit_compiler *compiler;
  struct jit_message m = {facts->nvrtc_problem, sizeof facts->nvrtc_problem, NULL};
  int version = facts->driver ? facts->driver->version : 0;
  facts->nvrtc_found = jit_compiler_search(version, keep_tried, &facts->nvrtc_search, m) == SGL_JIT_OK &&
                       jit_compiler(version, &compiler, m) == SGL_JIT_OK;
  if (!facts->nvrtc_found) {
    advise(
        facts,
        "without NVRTC only kernels that are in the cache or in the folder beside the library can be used: install the "
        "CUDA toolkit's, set CUDA_HOME, or name the file in SGL_KERNEL_JIT_NVRTC; that of a Python package is "
        "nvidia/cu13/lib/libnvrtc.so.13 (nvidia-cuda-nvrtc) or nvidia/cuda_nvrtc/lib/libnvrtc.so.12 "
        "(nvidia-cuda-nvrtc-cu12) in site-packages");
    return;
  }
  facts->nvrtc_problem[0] = '\0';
  jit_compiler_facts(compiler, &facts->nvrtc);
  if (!facts->nvrtc.builtins[0])
    advise(facts,
           "libnvrtc-builtins.so.%d.%d is missing, without which NVRTC compiles nothing: it comes with NVRTC "
           "and belongs beside %s",
           facts->nvrtc.major, facts->nvrtc.minor, facts->nvrtc.path);
  else
    find_builtins_version(facts);
  for (int d = 0; facts->driver && d < facts->driver->device_count; d++) {
    int major = facts->driver->devices[d].major, minor = facts->driver->devices[d].minor;
    struct jit_target exact = jit_target_exact(major, minor), best = jit_target_for(compiler, major, minor);
    if (strcmp(exact.name, best.name) != 0)
      advise(facts,
             "NVRTC %d.%d does not know %s (cuda:%d) and compiles %s in its place, which may be slower: install "
             "a newer one",
             facts->nvrtc.major, facts->nvrtc.minor, exact.name, d, best.name);
  }
}

/* Needed by bmm_fp8 alone: where there is none, the line that says so has the remedy. */
static void look_at_blas(struct facts *facts) {
  const struct jit_blas *blas;
  struct jit_message m = {facts->blas_problem, sizeof facts->blas_problem, NULL};
  int version = facts->driver ? facts->driver->version : 0;
  facts->blas_found = jit_blas_search(version, keep_tried, &facts->blas_search, m) == SGL_JIT_OK &&
                      jit_blas(version, &blas, m) == SGL_JIT_OK;
  if (facts->blas_found)
    jit_blas_facts(blas, &facts->blas);
}

static void look_at_folders(struct facts *facts) {
  for (int kind = 0; kind < JIT_FOLDER_COUNT; kind++) {
    struct tool_folder *folder = &facts->folders[kind];
    tool_open_folder((enum jit_folder_kind)kind, folder);
    size_t bad = 0;
    for (size_t i = 0; i < folder->count; i++)
      bad += folder->entries[i].state == STATE_BAD;
    if (bad)
      advise(facts, "%zu file%s in %s %s bad: see sgl-jit verify", bad, bad == 1 ? "" : "s", folder->folder.path,
             bad == 1 ? "is" : "are");
  }
  const struct jit_folder *cache = &facts->folders[JIT_FOLDER_CACHE].folder;
  if (cache->problem[0])
    advise(facts, "the cache folder is not used, so every process compiles anew: %s%s%s", cache->path,
           cache->path[0] ? " " : "", cache->problem);
  const struct jit_folder *prebuilt = &facts->folders[JIT_FOLDER_PREBUILT].folder;
  if (prebuilt->path[0] && prebuilt->problem[0])
    advise(facts, "the prebuilt folder is not used: %s %s", prebuilt->path, prebuilt->problem);
}

/* --- the environment --- */

static const char *const variables[] = {
    "SGL_KERNEL_JIT_BACKEND",
    "SGL_KERNEL_JIT_CACHE_DIR",
    "SGL_KERNEL_JIT_PREBUILT_DIR",
    "SGL_KERNEL_JIT_NVRTC",
    "SGL_KERNEL_JIT_CUBLASLT",
    "SGL_KERNEL_JIT_MONITOR",
    "SGL_KERNEL_JIT_BATCH_INVARIANT",
    "SGL_KERNEL_JIT_PDL_PREFETCH",
    "TRTLLM_ENABLE_PDL",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "XDG_CACHE_HOME",
    "HOME",
};
enum { VARIABLES = sizeof variables / sizeof variables[0] };

/* Variables that a wrong value makes useless; look_at_library has SGL_KERNEL_JIT_BACKEND. */
static const struct {
  const char *name, *values[3], *text, *otherwise;
} closed_variables[] = {
    {"SGL_KERNEL_JIT_MONITOR", {"off", "warn", "error"}, "off, warn or error", "every compile after the warm-up fails"},
    {"SGL_KERNEL_JIT_BATCH_INVARIANT", {"0", "1"}, "0 or 1", "every call on a GPU fails"},
    {"SGL_KERNEL_JIT_PDL_PREFETCH", {"0", "1"}, "0 or 1", "every call on a GPU fails"},
};

static void look_at_values(struct facts *facts) {
  for (size_t i = 0; i < sizeof closed_variables / sizeof closed_variables[0]; i++) {
    const char *value = getenv(closed_variables[i].name);
    bool good = !value || !*value;
    for (int v = 0; v < 3 && !good && closed_variables[i].values[v]; v++)
      good = strcmp(value, closed_variables[i].values[v]) == 0;
    if (!good)
      advise(facts, "%s is '%.100s', so %s: set it to %s, or unset it", closed_variables[i].name, value,
             closed_variables[i].otherwise, closed_variables[i].text);
  }
}

static void look_at_environment(struct facts *facts) {
  static const char prefix[] = "SGL_KERNEL_JIT_";
  for (char **set = environ; *set; set++) {
    size_t length = strcspn(*set, "=");
    bool known = strncmp(*set, prefix, sizeof prefix - 1) != 0;
    for (int i = 0; i < VARIABLES && !known; i++)
      known = strlen(variables[i]) == length && strncmp(variables[i], *set, length) == 0;
    if (!known)
      advise(facts, "%.*s is set, but no variable of this version: check its name", (int)length, *set);
  }
}

/* --- telling --- */

static void line(const char *name, const char *text) {
  tool_print(name, TOOL_PLAIN, 13);
  tool_print(text, TOOL_PLAIN, 0);
  putchar('\n');
}

/* Missing, a problem, or in use: the colours. */
static void line_of(const char *name, bool good, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void line_of(const char *name, bool good, const char *format, ...) {
  char text[2 * PATH_MAX];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  tool_print(name, TOOL_PLAIN, 13);
  tool_print(text, good ? TOOL_PLAIN : TOOL_YELLOW, 0);
  putchar('\n');
}

static void tell_search(const struct search *search) {
  for (size_t i = 0; i < search->count; i++) {
    const struct tried *t = &search->tried[i];
    tool_print(i ? "" : "  tried", TOOL_PLAIN, 13);
    tool_print(t->place, TOOL_PLAIN, 0);
    printf(": ");
    tool_print(t->path ? t->path : t->problem, TOOL_PLAIN, 0);
    if (t->path) {
      printf(": ");
      tool_print(t->problem ? t->problem : "found", t->problem ? TOOL_PLAIN : TOOL_GREEN, 0);
    }
    putchar('\n');
  }
}

static void tell_nvrtc(const struct facts *facts) {
  const struct jit_compiler_facts *n = &facts->nvrtc;
  if (facts->nvrtc_found) {
    line_of("nvrtc", true, "%d.%d, %s", n->major, n->minor, n->path);
    if (n->builtins[0])
      line_of("builtins", true, "%s, %s", facts->builtins_version, n->builtins);
    else
      line_of("builtins", false, "not found");
    tool_print("targets", TOOL_PLAIN, 12);
    for (int i = 0; i < n->target_count; i++)
      printf(" %s", n->targets[i].name);
    putchar('\n');
  } else {
    line_of("nvrtc", false, "none: %s", facts->nvrtc_problem);
  }
  tell_search(&facts->nvrtc_search);
}

static void tell_blas(const struct facts *facts) {
  if (facts->blas_found)
    line_of("cublaslt", true, "%s, %s", facts->blas.version, facts->blas.path);
  else
    line_of("cublaslt", false, "none: %s", facts->blas_problem);
  tell_search(&facts->blas_search);
}

static void tell(const struct facts *facts) {
  line("sgl-jit", sgl_jit_version());
  if (facts->library_found)
    line_of("library", true, "%s, %s (%s)", facts->library.version, facts->library.path, facts->library.source);
  else
    line_of("library", false, "%s not found, neither by name nor in %s", soname, facts->library.path);
  line("backend", facts->backend);
  if (facts->driver)
    line_of("driver", true, "CUDA %d.%d, %s", facts->driver->version / 1000, facts->driver->version % 1000 / 10,
            facts->driver_path);
  else
    line_of("driver", false, "none: %s", facts->driver_problem);
  for (int d = 0; facts->driver && d < facts->driver->device_count; d++) {
    const struct jit_device *device = &facts->driver->devices[d];
    char name[24];
    snprintf(name, sizeof name, "cuda:%d", d);
    line_of(name, device->major >= JIT_MIN_MAJOR, "compute capability %d.%d (%s), %d bytes of shared memory a block",
            device->major, device->minor, jit_target_exact(device->major, device->minor).name, device->shared_bytes);
  }
  tell_nvrtc(facts);
  tell_blas(facts);
  for (int kind = 0; kind < JIT_FOLDER_COUNT; kind++)
    tool_print_folder(&facts->folders[kind]);
  for (int i = 0, told = 0; i < VARIABLES; i++) {
    const char *value = getenv(variables[i]);
    if (value) {
      tool_print(told++ ? "" : "environment", TOOL_PLAIN, 13);
      printf("%s=", variables[i]);
      tool_print(value, TOOL_PLAIN, 0);
      putchar('\n');
    }
  }
  for (size_t i = 0; i < facts->advice_count; i++) {
    tool_print("advice: ", TOOL_YELLOW, 0);
    tool_print(facts->advice[i], TOOL_PLAIN, 0);
    putchar('\n');
  }
}

static json_t *version_json(int major, int minor) {
  return json_sprintf("%d.%d", major, minor);
}

static json_t *tried_json(const struct search *search) {
  json_t *tried = json_array();
  for (size_t i = 0; i < search->count; i++) {
    json_t *one = json_object();
    json_object_set_new(one, "place", tool_json(search->tried[i].place));
    json_object_set_new(one, "path", tool_json(search->tried[i].path));
    json_object_set_new(one, "problem", tool_json(search->tried[i].problem));
    json_array_append_new(tried, one);
  }
  return tried;
}

/* Where a library was found: the search ends there. */
static const char *place_of(const struct search *search) {
  return search->count ? search->tried[search->count - 1].place : NULL;
}

static json_t *blas_json(const struct facts *facts) {
  json_t *value = json_object();
  bool found = facts->blas_found;
  json_object_set_new(value, "version", tool_json(found ? facts->blas.version : NULL));
  json_object_set_new(value, "path", tool_json(found ? facts->blas.path : NULL));
  json_object_set_new(value, "place", tool_json(found ? place_of(&facts->blas_search) : NULL));
  json_object_set_new(value, "problem", tool_json(found ? NULL : facts->blas_problem));
  json_object_set_new(value, "tried", tried_json(&facts->blas_search));
  return value;
}

static json_t *nvrtc_json(const struct facts *facts) {
  json_t *value = json_object(), *targets = json_array();
  const struct jit_compiler_facts *n = &facts->nvrtc;
  bool found = facts->nvrtc_found;
  for (int i = 0; i < n->target_count; i++)
    json_array_append_new(targets, tool_json(n->targets[i].name));
  json_object_set_new(value, "version", found ? version_json(n->major, n->minor) : json_null());
  json_object_set_new(value, "path", tool_json(found ? n->path : NULL));
  json_object_set_new(value, "place", tool_json(found ? place_of(&facts->nvrtc_search) : NULL));
  json_object_set_new(value, "builtins_version", tool_json(found && n->builtins[0] ? facts->builtins_version : NULL));
  json_object_set_new(value, "builtins", tool_json(found && n->builtins[0] ? n->builtins : NULL));
  json_object_set_new(value, "targets", targets);
  json_object_set_new(value, "problem", tool_json(found ? NULL : facts->nvrtc_problem));
  json_object_set_new(value, "tried", tried_json(&facts->nvrtc_search));
  return value;
}

static json_t *driver_json(const struct facts *facts) {
  json_t *value = json_object();
  const struct jit_driver *d = facts->driver;
  json_object_set_new(value, "version", d ? version_json(d->version / 1000, d->version % 1000 / 10) : json_null());
  json_object_set_new(value, "path", tool_json(d ? facts->driver_path : NULL));
  json_object_set_new(value, "problem", tool_json(d ? NULL : facts->driver_problem));
  return value;
}

static json_t *devices_json(const struct facts *facts) {
  json_t *list = json_array();
  for (int i = 0; facts->driver && i < facts->driver->device_count; i++) {
    const struct jit_device *d = &facts->driver->devices[i];
    json_t *value = json_object();
    json_object_set_new(value, "index", json_integer(i));
    json_object_set_new(value, "compute_capability", version_json(d->major, d->minor));
    json_object_set_new(value, "target", tool_json(jit_target_exact(d->major, d->minor).name));
    json_object_set_new(value, "shared_memory_per_block", json_integer(d->shared_bytes));
    json_object_set_new(value, "supported", json_boolean(d->major >= JIT_MIN_MAJOR));
    json_array_append_new(list, value);
  }
  return list;
}

static void tell_json(const struct facts *facts) {
  json_t *value = json_object(), *library = json_object(), *folders = json_array(), *set = json_object(),
         *advice = json_array();
  bool found = facts->library_found;
  json_object_set_new(library, "path", tool_json(found ? facts->library.path : NULL));
  json_object_set_new(library, "version", tool_json(found ? facts->library.version : NULL));
  json_object_set_new(library, "source", tool_json(found ? facts->library.source : NULL));
  for (int kind = 0; kind < JIT_FOLDER_COUNT; kind++)
    json_array_append_new(folders, tool_folder_json(&facts->folders[kind]));
  for (int i = 0; i < VARIABLES; i++)
    if (getenv(variables[i]))
      json_object_set_new(set, variables[i], tool_json(getenv(variables[i])));
  for (size_t i = 0; i < facts->advice_count; i++)
    json_array_append_new(advice, tool_json(facts->advice[i]));
  json_object_set_new(value, "version", tool_json(sgl_jit_version()));
  json_object_set_new(value, "library", library);
  json_object_set_new(value, "backend", tool_json(facts->backend));
  json_object_set_new(value, "driver", driver_json(facts));
  json_object_set_new(value, "devices", devices_json(facts));
  json_object_set_new(value, "nvrtc", nvrtc_json(facts));
  json_object_set_new(value, "cublaslt", blas_json(facts));
  json_object_set_new(value, "folders", folders);
  json_object_set_new(value, "environment", set);
  json_object_set_new(value, "advice", advice);
  tool_print_json(value);
}

int tool_info(const struct tool_options *options) {
  struct facts facts = {.library_found = false};
  look_at_library(&facts);
  look_at_driver(&facts);
  look_at_nvrtc(&facts);
  look_at_blas(&facts);
  look_at_folders(&facts);
  look_at_environment(&facts);
  look_at_values(&facts);
  (options->format == FORMAT_JSON ? tell_json : tell)(&facts);
  for (int kind = 0; kind < JIT_FOLDER_COUNT; kind++)
    tool_close_folder(&facts.folders[kind]);
  forget_tried(&facts.nvrtc_search);
  forget_tried(&facts.blas_search);
  for (size_t i = 0; i < facts.advice_count; i++)
    free(facts.advice[i]);
  return STATUS_OK;
}
