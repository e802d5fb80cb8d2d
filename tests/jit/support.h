/* What the suites of the JIT share: tensors against unmapped pages, the fakes, and children that each begin with a
 * fresh library state. */
#ifndef SGL_TESTS_JIT_SUPPORT_H
#define SGL_TESTS_JIT_SUPPORT_H

#include "fakes.h"
#include "sgl_kernel_jit/sgl_kernel_jit.h"
#include "tests/unit.h"
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELPER __attribute__((unused)) static

/* --- folders --- */

/* The folder of this program, where the fakes are too. */
HELPER const char *own_folder(void) {
  static char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  char *slash = strrchr(path, '/');
  if (slash)
    *slash = '\0';
  return path;
}

struct path {
  char text[4096];
};

HELPER struct path path_in(const char *folder, const char *name) {
  struct path p;
  if ((size_t)snprintf(p.text, sizeof p.text, "%s/%s", folder, name) >= sizeof p.text)
    abort();
  return p;
}

HELPER struct path make_temporary(void) {
  struct path p = {"/tmp/sgl-jit-test-XXXXXX"};
  if (!mkdtemp(p.text))
    p.text[0] = '\0';
  return p;
}

HELPER void remove_tree(struct path p) {
  char command[4200];
  snprintf(command, sizeof command, "rm -rf '%s'", p.text);
  if (strncmp(p.text, "/tmp/sgl-jit-test-", 18) != 0 || system(command) != 0)
    fprintf(stderr, "  could not remove %s\n", p.text);
}

/* --- memory that ends, or begins, at an unmapped page --- */

struct guarded {
  void *data;
  void *map;
  size_t map_size;
};

HELPER struct guarded guarded_alloc(size_t size, bool at_end) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (size + page - 1) / page * page;
  struct guarded g = {.map_size = body + 2 * page};
  g.map = mmap(NULL, g.map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char *start = (char *)g.map + page;
  if (g.map == MAP_FAILED || mprotect(start, body, PROT_READ | PROT_WRITE) != 0)
    abort();
  memset(start, 0xff, body);
  g.data = at_end ? start + body - size : start;
  return g;
}

HELPER void guarded_free(struct guarded g) {
  munmap(g.map, g.map_size);
}

/* --- bf16 and random values --- */

HELPER float bf16_value(uint16_t b) {
  uint32_t bits = (uint32_t)b << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

HELPER void fill_random(uint16_t *p, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    float f = (float)((double)(seed >> 11) / (double)(1ull << 53) * 4.0 - 2.0);
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    p[i] = (uint16_t)(bits >> 16);
  }
}

/* --- a call with its tensors --- */

struct gemm {
  bool fused, f32, cuda;
  int device, tokens, n, k;
  struct guarded output, a, w;
  void *stream;
  char message[512];
};

HELPER size_t gemm_output_size(const struct gemm *g) {
  return (size_t)g->tokens * (size_t)g->n * (g->f32 ? 4 : 2);
}

/* `at_end`: the tensors end at an unmapped page, else they begin at one. */
HELPER void gemm_make(struct gemm *g, bool at_end) {
  g->output = guarded_alloc(gemm_output_size(g), at_end);
  g->a = guarded_alloc((size_t)g->tokens * (size_t)g->k * 2, at_end);
  g->w = guarded_alloc((size_t)g->n * (size_t)g->k * 2, at_end);
  fill_random(g->a.data, (size_t)g->tokens * (size_t)g->k, 1);
  fill_random(g->w.data, (size_t)g->n * (size_t)g->k, 2);
}

HELPER void gemm_free(struct gemm *g) {
  guarded_free(g->output);
  guarded_free(g->a);
  guarded_free(g->w);
}

HELPER sgl_jit_status gemm_run(struct gemm *g) {
  const int64_t sizes[3][2] = {{g->tokens, g->n}, {g->tokens, g->k}, {g->fused ? g->k : g->n, g->fused ? g->n : g->k}};
  const int64_t strides[3][2] = {{g->n, 1}, {g->k, 1}, {g->fused ? 1 : g->k, g->fused ? g->k : 1}};
  void *data[3] = {g->output.data, g->a.data, g->w.data};
  sgl_jit_tensor t[3];
  for (int i = 0; i < 3; i++)
    t[i] = (sgl_jit_tensor){data[i],
                            i == 0 && g->f32 ? SGL_JIT_DTYPE_FLOAT32 : SGL_JIT_DTYPE_BFLOAT16,
                            g->cuda ? SGL_JIT_DEVICE_CUDA : SGL_JIT_DEVICE_CPU,
                            g->device,
                            2,
                            sizes[i],
                            strides[i]};
  g->message[0] = '\0';
  return (g->fused ? sgl_jit_dsv3_fused_a_gemm : sgl_jit_dsv3_router_gemm)(&t[0], &t[1], &t[2], g->stream, g->message,
                                                                           sizeof g->message);
}

HELPER double gemm_value(const struct gemm *g, int m, int n) {
  size_t i = (size_t)m * (size_t)g->n + (size_t)n;
  return g->f32 ? (double)((float *)g->output.data)[i] : (double)bf16_value(((uint16_t *)g->output.data)[i]);
}

HELPER long double gemm_expected(const struct gemm *g, int m, int n) {
  const uint16_t *a = (uint16_t *)g->a.data + (size_t)m * (size_t)g->k;
  const uint16_t *w = (uint16_t *)g->w.data + (size_t)n * (size_t)g->k;
  long double sum = 0;
  for (int k = 0; k < g->k; k++)
    sum += (long double)bf16_value(a[k]) * (long double)bf16_value(w[k]);
  return sum;
}

/* Outputs that are further from the exact sum than half a last place and `slack` (of the sum's usual size) allow. */
HELPER int gemm_wrong(const struct gemm *g, double slack) {
  int wrong = 0;
  for (int m = 0; m < g->tokens; m++)
    for (int n = 0; n < g->n; n++) {
      long double want = gemm_expected(g, m, n);
      double allowed = fabs((double)want) / (g->f32 ? 1 << 24 : 1 << 8) + slack * sqrt((double)g->k);
      wrong += !(fabs((double)((long double)gemm_value(g, m, n) - want)) <= allowed);
    }
  return wrong;
}

/* --- children --- */

/* Runs `body` in a child, which has a library that nobody has used yet. Its failed assertions are reported here; it
 * must not use CU_..._FATAL, which would carry on with the parent's work. */
HELPER void in_child(void (*body)(void)) {
  fflush(stdout);
  fflush(stderr);
  unsigned before = CU_get_number_of_failure_records();
  pid_t pid = fork();
  if (pid == 0) {
    body();
    unsigned i = 0, failed = 0;
    for (CU_pFailureRecord f = CU_get_failure_list(); f; f = f->pNext)
      if (i++ >= before && ++failed)
        fprintf(stderr, "  in a child: %s:%u: %s\n", f->strFileName, f->uiLineNumber, f->strCondition);
    fflush(stdout);
    fflush(stderr);
    _exit(failed ? 1 : 0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CU_ASSERT(WIFEXITED(status));
  CU_ASSERT_EQUAL(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

/* A process of its own that ends with what `body` returns. */
HELPER pid_t start_process(int (*body)(void *), void *argument) {
  fflush(stdout);
  fflush(stderr);
  pid_t pid = fork();
  if (pid == 0)
    _exit(body(argument));
  return pid;
}

/* Its exit status, or minus the number of the signal that ended it. */
HELPER int end_process(pid_t pid) {
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Waits for `count` bytes from a pipe; false when they have not come after 20 s. */
HELPER bool heard(int pipe_end, int count) {
  char byte;
  for (int i = 0; i < count; i++) {
    struct pollfd p = {.fd = pipe_end, .events = POLLIN};
    if (poll(&p, 1, 20000) != 1 || read(pipe_end, &byte, 1) != 1)
      return false;
  }
  return true;
}

/* The files of a folder whose names begin with a prefix ("": all); the first one's path in `first`. */
HELPER int files_with(const char *folder, const char *prefix, struct path *first) {
  int count = 0;
  DIR *d = opendir(folder);
  for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || strncmp(e->d_name, prefix, strlen(prefix)) != 0)
      continue;
    if (count++ == 0 && first)
      *first = path_in(folder, e->d_name);
  }
  if (d)
    closedir(d);
  return count;
}

/* --- the fakes --- */

struct fakes {
  struct fake_cuda *cuda;
  struct fake_nvrtc *nvrtc;
  fake_cuda_count_function *count;
  fake_cuda_context_function *context;
};

/* Where the fake compiler keeps what it has compiled. */
HELPER void use_store(void) {
  struct path store = path_in(own_folder(), "emulated");
  mkdir(store.text, 0755);
  setenv("SGL_TEST_STORE", store.text, 1);
}

/* Loads the fakes, so that the library finds them; `cuda` is "fake_cuda.so" or "fake_cuda_11.so". */
HELPER struct fakes use_fakes(const char *cuda) {
  struct fakes f = {NULL, NULL, NULL, NULL};
  struct path nvrtc = path_in(own_folder(), "fake_nvrtc.so");
  use_store();
  setenv("SGL_KERNEL_JIT_NVRTC", nvrtc.text, 1);
  void *driver = dlopen(path_in(own_folder(), cuda).text, RTLD_NOW);
  void *compiler = dlopen(nvrtc.text, RTLD_NOW);
  if (!driver || !compiler) {
    fprintf(stderr, "  %s\n", dlerror());
    abort();
  }
  f.cuda = dlsym(driver, "fake_cuda");
  f.nvrtc = dlsym(compiler, "fake_nvrtc");
  *(void **)&f.count = dlsym(driver, "fake_cuda_count");
  *(void **)&f.context = dlsym(driver, "fake_cuda_context");
  return f;
}

#endif
