#include "scanner/libclang.h"
#include "scanner/scanner.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>

/* LIBCLANG_FILE and LIBCLANG_SONAME are those of the build (Makefile). */
static struct libclang functions;
static bool loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
  void *library = dlopen(LIBCLANG_FILE, RTLD_LAZY | RTLD_LOCAL);
  if (!library)
    library = dlopen(LIBCLANG_SONAME, RTLD_LAZY | RTLD_LOCAL);
  loaded = library != NULL;
#define F(name)                                                                                                        \
  if (loaded) {                                                                                                        \
    *(void **)&functions.name = dlsym(library, "clang_" #name);                                                        \
    loaded = functions.name != NULL;                                                                                   \
  }
  LIBCLANG_FUNCTIONS(F)
#undef F
}

const struct libclang *libclang_open(void) {
  pthread_once(&once, load);
  return loaded ? &functions : NULL;
}

char *libclang_identity(void) {
  struct stat status;
  if (stat(LIBCLANG_FILE, &status) != 0)
    return scan_format("%s", LIBCLANG_SONAME);
  return scan_format("%s %lld %lld.%ld", LIBCLANG_SONAME, (long long)status.st_size, (long long)status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}
