/* NVRTC, the run-time compiler, found with dlopen. */
#include "internal.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;

/* Numbers from nvrtc.h, which the build does not need. */
enum {
  NVRTC_OUT_OF_MEMORY = 1,
  NVRTC_BUILTIN_OPERATION_FAILURE = 7, /* libnvrtc-builtins is missing */
};
enum {
  OLDEST_MAJOR = 12,
  OLDEST_MINOR = 1,     /* whose PTX 8.1 has the st.async of the router on 9.0 and newer */
  MINIMAL_SINCE = 1204, /* release notes of CUDA 12.4; saves 15 ms of a compile */
  MAX_ARCHS = 64,
  PATH_SIZE = 4096
};

#define NVRTC_FUNCTIONS(X)                                                                                             \
  X(nvrtcVersion, nvrtcResult, (int *major, int *minor))                                                               \
  X(nvrtcGetErrorString, const char *, (nvrtcResult result))                                                           \
  X(nvrtcGetNumSupportedArchs, nvrtcResult, (int *count))                                                              \
  X(nvrtcGetSupportedArchs, nvrtcResult, (int *archs))                                                                 \
  X(nvrtcCreateProgram, nvrtcResult,                                                                                   \
    (nvrtcProgram * program, const char *source, const char *name, int header_count, const char *const *headers,       \
     const char *const *header_names))                                                                                 \
  X(nvrtcDestroyProgram, nvrtcResult, (nvrtcProgram * program))                                                        \
  X(nvrtcCompileProgram, nvrtcResult, (nvrtcProgram program, int option_count, const char *const *options))            \
  X(nvrtcGetCUBINSize, nvrtcResult, (nvrtcProgram program, size_t * size))                                             \
  X(nvrtcGetCUBIN, nvrtcResult, (nvrtcProgram program, char *cubin))                                                   \
  X(nvrtcGetPTXSize, nvrtcResult, (nvrtcProgram program, size_t * size))                                               \
  X(nvrtcGetPTX, nvrtcResult, (nvrtcProgram program, char *ptx))                                                       \
  X(nvrtcGetProgramLogSize, nvrtcResult, (nvrtcProgram program, size_t * size))                                        \
  X(nvrtcGetProgramLog, nvrtcResult, (nvrtcProgram program, char *log))

struct jit_compiler {
#define POINTER(name, result, parameters) result(*name) parameters;
  NVRTC_FUNCTIONS(POINTER)
#undef POINTER
  int major, minor;
  int archs[MAX_ARCHS]; /* 90 is sm_90 */
  int arch_count;
};

/* --- finding it --- */

sgl_jit_status jit_compiler_search(int driver_version, jit_search_watch *watch, void *user, struct jit_message m) {
  void *library;
  return jit_library_open(&jit_library_nvrtc, driver_version, &library, watch, user, m);
}

/* NVRTC opens its builtins by name, which finds them beside it only if they are loaded already. Where there are none,
 * it says so when it compiles. */
static void load_builtins(const struct jit_compiler *compiler) {
  Dl_info info;
  char path[PATH_SIZE + 64];
  if (!dladdr(*(void *const *)&compiler->nvrtcVersion, &info) || !info.dli_fname)
    return;
  const char *slash = strrchr(info.dli_fname, '/');
  if (!slash || slash - info.dli_fname >= PATH_SIZE)
    return;
  snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - info.dli_fname), info.dli_fname,
           compiler->major, compiler->minor);
  dlopen(path, RTLD_NOW); /* kept */
}

static sgl_jit_status start(void *library, struct jit_compiler *c, struct jit_message m) {
#define FIND(name, result, parameters)                                                                                 \
  *(void **)&c->name = dlsym(library, #name);                                                                          \
  if (!c->name)                                                                                                        \
    return jit_fail(m, SGL_JIT_ERROR_NO_COMPILER, "NVRTC has no function " #name ": it is too old, 12.1 is needed");
  NVRTC_FUNCTIONS(FIND)
#undef FIND
  nvrtcResult result = c->nvrtcVersion(&c->major, &c->minor);
  if (result)
    return jit_fail(m, SGL_JIT_ERROR_NO_COMPILER, "NVRTC does not answer: %s", c->nvrtcGetErrorString(result));
  if (c->major < OLDEST_MAJOR || (c->major == OLDEST_MAJOR && c->minor < OLDEST_MINOR))
    return jit_fail(m, SGL_JIT_ERROR_NO_COMPILER, "NVRTC %d.%d is too old, %d.%d is needed", c->major, c->minor,
                    OLDEST_MAJOR, OLDEST_MINOR);
  int count = 0;
  if (c->nvrtcGetNumSupportedArchs(&count) || count < 0 || count > MAX_ARCHS || c->nvrtcGetSupportedArchs(c->archs))
    return jit_fail(m, SGL_JIT_ERROR_NO_COMPILER, "NVRTC does not list its targets");
  c->arch_count = count;
  load_builtins(c);
  return SGL_JIT_OK;
}

static sgl_jit_status open_compiler(int driver_version, struct jit_compiler *compiler, struct jit_message m) {
  void *library;
  sgl_jit_status status = jit_library_open(&jit_library_nvrtc, driver_version, &library, NULL, NULL, m);
  if (status != SGL_JIT_OK)
    return status;
  status = start(library, compiler, m);
  if (status != SGL_JIT_OK)
    dlclose(library); /* else it stays loaded */
  return status;
}

sgl_jit_status jit_compiler(int driver_version, const struct jit_compiler **compiler, struct jit_message m) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static struct jit_compiler only;
  static bool opened;
  pthread_mutex_lock(&lock);
  sgl_jit_status status = opened ? SGL_JIT_OK : open_compiler(driver_version, &only, m);
  opened = status == SGL_JIT_OK;
  pthread_mutex_unlock(&lock);
  *compiler = &only;
  return status;
}

static void file_of(const void *address, char *path, size_t size) {
  Dl_info info;
  snprintf(path, size, "%s", dladdr(address, &info) && info.dli_fname ? info.dli_fname : "");
}

void jit_compiler_facts(const struct jit_compiler *compiler, struct jit_compiler_facts *facts) {
  char name[64];
  struct link_map *map;
  *facts = (struct jit_compiler_facts){.major = compiler->major, .minor = compiler->minor};
  file_of(*(void *const *)&compiler->nvrtcVersion, facts->path, sizeof facts->path);
  snprintf(name, sizeof name, "libnvrtc-builtins.so.%d.%d", compiler->major, compiler->minor);
  void *builtins = dlopen(name, RTLD_NOW); /* as NVRTC does when it compiles */
  if (builtins && dlinfo(builtins, RTLD_DI_LINKMAP, &map) == 0)
    snprintf(facts->builtins, sizeof facts->builtins, "%s", map->l_name);
  for (int i = 0; i < compiler->arch_count && i < JIT_FACTS_TARGETS; i++)
    if (compiler->archs[i] / 10 >= JIT_MIN_MAJOR)
      facts->targets[facts->target_count++] = jit_target_exact(compiler->archs[i] / 10, compiler->archs[i] % 10);
}

/* --- targets --- */

struct jit_target jit_target_exact(int major, int minor) {
  struct jit_target target;
  snprintf(target.name, sizeof target.name, "sm_%d%d%s", major, minor, major >= 9 ? "a" : "");
  return target;
}

bool jit_target_parse(const char *name, int *major, int *minor) {
  long number = strncmp(name, "sm_", 3) == 0 ? strtol(name + 3, NULL, 10) : 0;
  *major = (int)(number / 10);
  *minor = (int)(number % 10);
  return number > 0 && number < 1000 && strcmp(jit_target_exact(*major, *minor).name, name) == 0;
}

int jit_target_capability(const char *name) {
  const char *number = strchr(name, '_');
  return number ? atoi(number + 1) : 0;
}

struct jit_target jit_target_for(const struct jit_compiler *compiler, int major, int minor) {
  int own = major * 10 + minor, same_major = 0, older = 0;
  for (int i = 0; i < compiler->arch_count; i++) {
    int arch = compiler->archs[i];
    if (arch == own)
      return jit_target_exact(major, minor);
    if (arch < own && arch > older)
      older = arch;
    if (arch < own && arch / 10 == major && arch > same_major)
      same_major = arch;
  }
  struct jit_target target = jit_target_exact(major, minor); /* older than all it knows: it will say so */
  if (same_major) /* code for a smaller minor version runs on a greater one, but only without the "a" */
    snprintf(target.name, sizeof target.name, "sm_%d", same_major);
  else if (older) /* PTX, which the driver compiles */
    snprintf(target.name, sizeof target.name, "compute_%d", older);
  return target;
}

/* --- compiling --- */

/* The first line of the log that says "error", else its first line. */
static sgl_jit_status log_line(const struct jit_compiler *c, nvrtcProgram program, nvrtcResult result,
                               struct jit_message m) {
  size_t size = 0;
  char *log = NULL;
  if (c->nvrtcGetProgramLogSize(program, &size) == 0 && size > 1 && (log = malloc(size + 1)) != NULL) {
    log[0] = '\0';
    if (c->nvrtcGetProgramLog(program, log))
      log[0] = '\0';
    log[size] = '\0';
  }
  const char *line = log ? strstr(log, "error") : NULL;
  while (line && line > log && line[-1] != '\n')
    line--;
  if (!line)
    line = log ? log : "";
  sgl_jit_status status = jit_fail(m, SGL_JIT_ERROR_COMPILE, "NVRTC %d.%d refused the kernel (%s): %.*s", c->major,
                                   c->minor, c->nvrtcGetErrorString(result), (int)strcspn(line, "\n"), line);
  free(log);
  return status;
}

static sgl_jit_status fetch(const struct jit_compiler *c, nvrtcProgram program, bool ptx, struct jit_image *image,
                            struct jit_message m) {
  size_t size = 0;
  nvrtcResult result = ptx ? c->nvrtcGetPTXSize(program, &size) : c->nvrtcGetCUBINSize(program, &size);
  if (result || size == 0)
    return jit_fail(m, SGL_JIT_ERROR_COMPILE, "NVRTC gave no code: %s", c->nvrtcGetErrorString(result));
  char *data = malloc(size);
  if (!data)
    return jit_fail(m, SGL_JIT_ERROR_OUT_OF_MEMORY, "out of memory");
  result = ptx ? c->nvrtcGetPTX(program, data) : c->nvrtcGetCUBIN(program, data);
  if (result) {
    free(data);
    return jit_fail(m, SGL_JIT_ERROR_COMPILE, "NVRTC gave no code: %s", c->nvrtcGetErrorString(result));
  }
  *image = (struct jit_image){data, size};
  return SGL_JIT_OK;
}

sgl_jit_status jit_compile(const struct jit_compiler *compiler, enum jit_op op, const struct jit_plan *plan,
                           const struct jit_target *target, struct jit_image *image, struct jit_message m) {
  const struct jit_headers *headers = jit_kernel_headers(op);
  char architecture[48];
  const char *options[sizeof plan->options / sizeof plan->options[0] + 3];
  int count = 0;
  snprintf(architecture, sizeof architecture, "--gpu-architecture=%s", target->name);
  options[count++] = architecture;
  options[count++] = "--std=c++17";
  if (compiler->major * 100 + compiler->minor >= MINIMAL_SINCE) /* no declarations of textures and the CUDA runtime */
    options[count++] = "--minimal";
  for (int i = 0; i < plan->option_count; i++)
    options[count++] = plan->options[i];

  nvrtcProgram program = NULL;
  nvrtcResult result = compiler->nvrtcCreateProgram(&program, jit_kernel_text(op), jit_op_name(op), headers->count,
                                                    headers->texts, headers->names);
  if (result)
    return jit_fail(m, SGL_JIT_ERROR_COMPILE, "NVRTC refused the kernel: %s", compiler->nvrtcGetErrorString(result));
  int64_t start = jit_now_ns();
  result = compiler->nvrtcCompileProgram(program, count, options);
  jit_count(compiles, 1);
  jit_count(compile_ns, jit_now_ns() - start);
  sgl_jit_status status;
  if (result == NVRTC_BUILTIN_OPERATION_FAILURE)
    status = jit_fail(m, SGL_JIT_ERROR_NO_COMPILER, "NVRTC %d.%d found no libnvrtc-builtins.so.%d.%d beside it",
                      compiler->major, compiler->minor, compiler->major, compiler->minor);
  else if (result == NVRTC_OUT_OF_MEMORY)
    status = jit_fail(m, SGL_JIT_ERROR_OUT_OF_MEMORY, "NVRTC ran out of memory");
  else if (result)
    status = log_line(compiler, program, result, m);
  else
    status = fetch(compiler, program, strncmp(target->name, "compute_", 8) == 0, image, m);
  compiler->nvrtcDestroyProgram(&program);
  return status;
}
