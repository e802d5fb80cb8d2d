#include "shim/forward.h"

#include "shim/loaded.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

static void *module_of(const void *address) {
  Dl_info info;
  return dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* Two copies of this library would call each other for ever. */
static bool is_a_copy_of_us(void *handle, void *module) {
  void *version = dlsym(handle, "sgl_compat_version");
  return version && module_of(version) == module;
}

static void *search(const char *name) {
  void *const here = module_of((const void *)search);
  size_t count;
  char **paths = loaded_paths(&count);
  void *found = NULL;
  for (size_t i = 0; i < count && !found; i++) {
    void *handle = dlopen(paths[i][0] ? paths[i] : NULL, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
      continue;
    found = dlsym(handle, name); /* looks into the library's dependencies too, which may be us */
    void *module = found ? module_of(found) : NULL;
    if (found && (module == here || is_a_copy_of_us(handle, module)))
      found = NULL;
    if (!found)
      dlclose(handle);
  }
  loaded_free(paths, count);
  return found;
}

void *forward_find(struct forward *forward, const char *name) {
  void *target = atomic_load_explicit(&forward->target, memory_order_acquire);
  if (target)
    return target;
  uint64_t generation = loaded_generation();
  if (atomic_load_explicit(&forward->searched, memory_order_acquire) == generation)
    return NULL;
  int saved = errno;
  target = search(name);
  if (target)
    atomic_store_explicit(&forward->target, target, memory_order_release);
  else
    atomic_store_explicit(&forward->searched, generation, memory_order_release);
  errno = saved;
  return target;
}
