/* cuBLASLt, found with dlopen. */
#include "internal.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

enum { OLDEST = 12 * 10000 }; /* as cublasLtGetVersion gives it: 130100 is 13.1.0 */

static const struct jit_library_name library_name = {
    .title = "cuBLASLt",
    .file = "libcublasLt.so.",
    .variable = "SGL_KERNEL_JIT_CUBLASLT",
    .wheel = "cublas",
    .status = SGL_JIT_ERROR_NO_CUBLASLT,
    .missing = "no cuBLASLt (libcublasLt.so.13 or .12): install nvidia-cublas, set CUDA_HOME, or name the file in "
               "SGL_KERNEL_JIT_CUBLASLT"};

sgl_jit_status jit_blas_search(int driver_version, jit_search_watch *watch, void *user, struct jit_message m) {
  void *library;
  return jit_library_open(&library_name, driver_version, &library, watch, user, m);
}

static sgl_jit_status find_functions(void *library, struct jit_blas *blas, struct jit_message m) {
#define FIND(name, result, parameters)                                                                                 \
  *(void **)&blas->name = dlsym(library, #name);                                                                       \
  if (!blas->name)                                                                                                     \
    return jit_fail(m, SGL_JIT_ERROR_NO_CUBLASLT, "cuBLASLt has no function " #name ": it is too old, 12.0 is needed");
  JIT_BLAS_FUNCTIONS(FIND)
#undef FIND
  struct jit_blas_facts facts;
  jit_blas_facts(blas, &facts);
  if (blas->cublasLtGetVersion() < OLDEST)
    return jit_fail(m, SGL_JIT_ERROR_NO_CUBLASLT, "cuBLASLt %s (%s) is too old, 12.0 is needed", facts.version,
                    facts.path);
  return SGL_JIT_OK;
}

sgl_jit_status jit_blas(int driver_version, const struct jit_blas **blas, struct jit_message m) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static struct jit_blas only;
  static bool opened;
  void *library = NULL;
  sgl_jit_status status = SGL_JIT_OK;
  pthread_mutex_lock(&lock);
  if (!opened) {
    status = jit_library_open(&library_name, driver_version, &library, NULL, NULL, m);
    if (status == SGL_JIT_OK)
      status = find_functions(library, &only, m);
    opened = status == SGL_JIT_OK; /* and then it stays loaded */
    if (!opened && library)
      dlclose(library);
  }
  pthread_mutex_unlock(&lock);
  *blas = &only;
  return status;
}

void jit_blas_facts(const struct jit_blas *blas, struct jit_blas_facts *facts) {
  Dl_info info;
  unsigned version = (unsigned)blas->cublasLtGetVersion();
  snprintf(facts->version, sizeof facts->version, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
  snprintf(facts->path, sizeof facts->path, "%s",
           dladdr(*(void *const *)&blas->cublasLtGetVersion, &info) && info.dli_fname ? info.dli_fname : "");
}

const char *jit_blas_error(const struct jit_blas *blas, cublasStatus_t status) {
  const char *name = blas->cublasLtGetStatusName(status);
  return name ? name : "an unknown error";
}
