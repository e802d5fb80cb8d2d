#include "shim/loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

static int read_generation(struct dl_phdr_info *info, size_t size, void *generation) {
  (void)size;
  *(uint64_t *)generation = info->dlpi_adds;
  return 1; /* the first object tells: the count is the process's */
}

uint64_t loaded_generation(void) {
  uint64_t generation = 0;
  dl_iterate_phdr(read_generation, &generation);
  return generation;
}

struct list {
  char **path;
  size_t count, room;
  bool failed;
};

static int add_path(struct dl_phdr_info *info, size_t size, void *user) {
  (void)size;
  struct list *list = user;
  if (list->count == list->room) {
    size_t room = list->room ? list->room * 2 : 64;
    char **grown = realloc(list->path, room * sizeof *grown);
    if (!grown) {
      list->failed = true;
      return 1;
    }
    list->path = grown;
    list->room = room;
  }
  char *path = strdup(info->dlpi_name ? info->dlpi_name : "");
  if (!path) {
    list->failed = true;
    return 1;
  }
  list->path[list->count++] = path;
  return 0;
}

/* The paths are collected first and opened afterwards: dlopen inside the callback would take the loader's locks in the
 * wrong order. */
char **loaded_paths(size_t *count) {
  struct list list = {0};
  dl_iterate_phdr(add_path, &list);
  if (list.failed) {
    loaded_free(list.path, list.count);
    list.path = NULL;
    list.count = 0;
  }
  *count = list.count;
  return list.path;
}

void loaded_free(char **paths, size_t count) {
  for (size_t i = 0; i < count; i++)
    free(paths[i]);
  free(paths);
}

static bool open_if(const char *path, const char *function, void **handle) {
  *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (*handle && dlsym(*handle, function))
    return true;
  if (*handle)
    dlclose(*handle);
  return false;
}

static bool is_file_of(const char *path, const char *name) {
  const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
  size_t length = strlen(name);
  return strncmp(file, name, length) == 0 && (file[length] == '\0' || file[length] == '.');
}

char *loaded_path_of(const char *name) {
  size_t count;
  char **paths = loaded_paths(&count), *found = NULL;
  for (size_t i = 0; i < count && !found; i++)
    if (is_file_of(paths[i], name))
      found = strdup(paths[i]);
  loaded_free(paths, count);
  return found;
}

bool loaded_open(const char *name, const char *function, void **handle) {
  if (open_if(name, function, handle))
    return true;
  size_t count;
  char **paths = loaded_paths(&count);
  bool found = false;
  for (size_t i = 0; i < count && !found; i++)
    found = is_file_of(paths[i], name) && open_if(paths[i], function, handle);
  loaded_free(paths, count);
  if (found)
    return true;
  *handle = RTLD_DEFAULT;
  return dlsym(RTLD_DEFAULT, function) != NULL;
}

void loaded_close(void *handle) {
  if (handle != RTLD_DEFAULT)
    dlclose(handle);
}
