/* A library of the CUDA toolkit, found as library_search.c says and loaded with dlopen. */
#include "internal.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden"))); /* of this library, from the linker */

/* Made for another kind of processor? Of such a file the loader says that there is none. */
static bool is_foreign(const char *path) {
  ElfW(Ehdr) header;
  int file = strchr(path, '/') ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
  bool foreign = file >= 0 && read(file, &header, sizeof header) == sizeof header &&
                 memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_machine != __ehdr_start.e_machine;
  if (file >= 0)
    close(file);
  return foreign;
}

struct reason {
  char text[512]; /* as messages are */
};

static void *open_file(void *user, const char *path, bool loaded, const char **problem) {
  struct reason *foreign = user;
  void *library = dlopen(path, RTLD_NOW | (loaded ? RTLD_NOLOAD : 0));
  const char *reason = library ? NULL : dlerror();
  if (reason && !loaded && is_foreign(path)) {
    snprintf(foreign->text, sizeof foreign->text, "%.440s: made for another kind of processor", path);
    reason = foreign->text;
  }
  *problem = loaded ? NULL : reason; /* of what is not loaded it is none */
  return library;
}

struct folder {
  char *path;
  size_t size;
};

static int find_runtime(struct dl_phdr_info *info, size_t size, void *user) {
  (void)size;
  struct folder *folder = user;
  const char *slash = strrchr(info->dlpi_name, '/');
  if (!slash || strncmp(slash + 1, "libcudart.so.", 13) != 0 || (size_t)(slash - info->dlpi_name) >= folder->size)
    return 0;
  memcpy(folder->path, info->dlpi_name, (size_t)(slash - info->dlpi_name));
  folder->path[slash - info->dlpi_name] = '\0';
  return 1;
}

static bool loaded_runtime(void *user, char *path, size_t size) {
  (void)user;
  struct folder folder = {path, size};
  return dl_iterate_phdr(find_runtime, &folder);
}

sgl_jit_status jit_library_open(const struct jit_library_name *name, int driver_version, void **library,
                                jit_search_watch *watch, void *user, struct jit_message m) {
  struct reason foreign;
  const struct jit_library_opener opener = {open_file, loaded_runtime, &foreign};
  return jit_library_search(name, driver_version, &opener, library, watch, user, m);
}
