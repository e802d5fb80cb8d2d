/* A stand-in for NVRTC. Its "cubin" is a shared library for the CPU, made by the C++ compiler from the kernel's own
 * text and emulated_device.cuh; fake_cuda.c loads and runs it. Compiled ones are kept in the folder SGL_TEST_STORE. */
#include "fakes.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT struct fake_nvrtc fake_nvrtc = {
    .major = 13, .minor = 0, .archs = {80, 86, 89, 90, 100, 103, 120}, .archs_n = 7, .log = ""};

extern const char emulated_device[], emulated_elements[];
__asm__(".pushsection .rodata\n.hidden emulated_device\n.global emulated_device\nemulated_device:\n"
        ".incbin \"tests/jit/emulated_device.cuh\"\n.byte 0\n"
        ".hidden emulated_elements\n.global emulated_elements\nemulated_elements:\n"
        ".incbin \"tests/jit/emulated_elements.cuh\"\n.byte 0\n.popsection\n");

/* The one of the headers that is for the device alone is replaced, the others are used as they are. */
enum { HEADERS = 3 };
static const struct family {
  const char *header, *emulated, *mark; /* which the device's text must have */
  int count;
} families[] = {{"device.cuh", emulated_device, "mma.sync", 2}, {"elements.cuh", emulated_elements, "cvt.rn.bf16", 3}};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct program {
  char *source, *code;
  char *names[HEADERS], *headers[HEADERS];
  int count;
  size_t size;
  int failed, ptx;
};

EXPORT int nvrtcVersion(int *major, int *minor);
EXPORT const char *nvrtcGetErrorString(int result);
EXPORT int nvrtcGetNumSupportedArchs(int *count);
EXPORT int nvrtcGetSupportedArchs(int *archs);
EXPORT int nvrtcCreateProgram(struct program **program, const char *source, const char *name, int header_count,
                              const char *const *headers, const char *const *header_names);
EXPORT int nvrtcDestroyProgram(struct program **program);
EXPORT int nvrtcCompileProgram(struct program *program, int option_count, const char *const *options);
EXPORT int nvrtcGetCUBINSize(struct program *program, size_t *size);
EXPORT int nvrtcGetCUBIN(struct program *program, char *cubin);
EXPORT int nvrtcGetPTXSize(struct program *program, size_t *size);
EXPORT int nvrtcGetPTX(struct program *program, char *ptx);
EXPORT int nvrtcGetProgramLogSize(struct program *program, size_t *size);
EXPORT int nvrtcGetProgramLog(struct program *program, char *log);

int nvrtcVersion(int *major, int *minor) {
  fake_nvrtc.asked++;
  *major = fake_nvrtc.major;
  *minor = fake_nvrtc.minor;
  return 0;
}

const char *nvrtcGetErrorString(int result) {
  return result == 6 ? "NVRTC_ERROR_COMPILATION" : result ? "NVRTC_ERROR_OTHER" : "NVRTC_SUCCESS";
}

int nvrtcGetNumSupportedArchs(int *count) {
  *count = fake_nvrtc.archs_n;
  return 0;
}

int nvrtcGetSupportedArchs(int *archs) {
  memcpy(archs, fake_nvrtc.archs, (size_t)fake_nvrtc.archs_n * sizeof *archs);
  return 0;
}

int nvrtcCreateProgram(struct program **program, const char *source, const char *name, int header_count,
                       const char *const *headers, const char *const *header_names) {
  const struct family *f = &families[header_count == 3];
  if (header_count != f->count || strcmp(header_names[0], f->header) != 0 || !strstr(headers[0], f->mark) || !*name)
    return 3;
  *program = calloc(1, sizeof **program);
  (*program)->source = strdup(source);
  (*program)->count = header_count;
  for (int i = 0; i < header_count; i++) {
    (*program)->names[i] = strdup(header_names[i]);
    (*program)->headers[i] = strdup(i == 0 ? f->emulated : headers[i]);
  }
  return 0;
}

int nvrtcDestroyProgram(struct program **program) {
  free((*program)->source);
  for (int i = 0; i < (*program)->count; i++) {
    free((*program)->names[i]);
    free((*program)->headers[i]);
  }
  free((*program)->code);
  free(*program);
  *program = NULL;
  return 0;
}

static int write_file(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  return f && fputs(text, f) >= 0 && fclose(f) == 0;
}

static char *read_file(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  if (!f)
    return NULL;
  fseek(f, 0, SEEK_END);
  *size = (size_t)ftell(f);
  rewind(f);
  char *data = malloc(*size);
  if (fread(data, 1, *size, f) != *size)
    *size = 0;
  fclose(f);
  return data;
}

static const char *const compiler[] = {"g++", "-O1", "-w", "-std=c++17", "-shared", "-fPIC"};
enum { COMPILER_WORDS = sizeof compiler / sizeof compiler[0], MAX_WORDS = 32 };

/* Runs the C++ compiler in a folder of its own below `store` and renames what comes of it to `target`. */
static int build(const struct program *program, int option_count, const char *const *options, const char *store,
                 const char *target) {
  char folder[480], header[HEADERS][544], kernel[512], made[512];
  if (snprintf(folder, sizeof folder, "%s/new-XXXXXX", store) >= (int)sizeof folder || !mkdtemp(folder))
    return 0;
  snprintf(kernel, sizeof kernel, "%s/kernel.cc", folder);
  snprintf(made, sizeof made, "%s/kernel.so", folder);
  int status = -1, written = write_file(kernel, program->source);
  for (int i = 0; i < program->count; i++) {
    snprintf(header[i], sizeof header[i], "%s/%s", folder, program->names[i]);
    written = write_file(header[i], program->headers[i]) && written;
  }
  if (written) {
    const char *arguments[32] = {"g++", "-O1",  "-w", "-std=c++17", "-shared", "-fPIC",
                                 "-I",  folder, "-o", made,         kernel};
    int count = 11;
    for (int i = 0; i < option_count && count < 31; i++)
      if (strncmp(options[i], "-D", 2) == 0)
        arguments[count++] = options[i];
    pid_t pid = fork();
    if (pid == 0) {
      unsetenv("LD_PRELOAD");
      execvp("g++", (char **)(uintptr_t)arguments);
      _exit(127);
    }
    waitpid(pid, &status, 0);
  }
  int good = WIFEXITED(status) && WEXITSTATUS(status) == 0 && rename(made, target) == 0;
  for (int i = 0; i < program->count; i++)
    unlink(header[i]);
  unlink(kernel);
  rmdir(folder);
  return good;
}

int nvrtcCompileProgram(struct program *program, int option_count, const char *const *options) {
  char path[512], *text = fake_nvrtc.options, byte = 0;
  fake_nvrtc.compiled++;
  if (fake_nvrtc.idle) {
    program->code = strdup("idle");
    program->size = sizeof "idle";
    return 0;
  }
  if ((fake_nvrtc.told && write(fake_nvrtc.told, &byte, 1) != 1) ||
      (fake_nvrtc.held && read(fake_nvrtc.held, &byte, 1) != 1))
    fprintf(stderr, "  fake compiler: nobody holds the compile\n");
  XXH3_state_t *state = XXH3_createState();
  pthread_mutex_lock(&lock); /* of the options, which the last one leaves */
  XXH3_64bits_reset(state);
  XXH3_64bits_update(state, program->source, strlen(program->source));
  for (int i = 0; i < program->count; i++)
    XXH3_64bits_update(state, program->headers[i], strlen(program->headers[i]));
  *text = '\0';
  for (int i = 0; i < COMPILER_WORDS; i++)
    XXH3_64bits_update(state, compiler[i], strlen(compiler[i]) + 1);
  for (int i = 0; i < option_count; i++) {
    XXH3_64bits_update(state, options[i], strlen(options[i]) + 1);
    program->ptx |= strstr(options[i], "=compute_") != NULL;
    snprintf(text + strlen(text), sizeof fake_nvrtc.options - strlen(text), "%s%s", i ? " " : "", options[i]);
  }
  unsigned long long hash = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  pthread_mutex_unlock(&lock);
  if (fake_nvrtc.compile_error)
    return fake_nvrtc.compile_error;
  const char *store = getenv("SGL_TEST_STORE");
  if (!store || snprintf(path, sizeof path, "%s/%016llx.so", store, hash) >= (int)sizeof path ||
      (access(path, R_OK) != 0 && !build(program, option_count, options, store, path)))
    return 6;
  program->code = read_file(path, &program->size);
  return program->code ? 0 : 6;
}

int nvrtcGetCUBINSize(struct program *program, size_t *size) {
  *size = program->ptx ? 0 : program->size;
  return 0;
}

int nvrtcGetCUBIN(struct program *program, char *cubin) {
  memcpy(cubin, program->code, program->size);
  return 0;
}

int nvrtcGetPTXSize(struct program *program, size_t *size) {
  *size = program->size;
  return 0;
}

int nvrtcGetPTX(struct program *program, char *ptx) {
  return nvrtcGetCUBIN(program, ptx);
}

int nvrtcGetProgramLogSize(struct program *program, size_t *size) {
  (void)program;
  *size = strlen(fake_nvrtc.log) + 1;
  return 0;
}

int nvrtcGetProgramLog(struct program *program, char *log) {
  (void)program;
  strcpy(log, fake_nvrtc.log);
  return 0;
}
