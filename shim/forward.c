#include "shim/forward.h"

#include "shim/loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

static const struct link_map *module_of(const void *address) {
  Dl_info info;
  struct link_map *module;
  return address && dladdr1(address, &info, (void **)&module, RTLD_DL_LINKMAP) ? module : NULL;
}

/* dlsym looks into the dependencies of the library too, and for the main program into the whole global scope. What is
 * found there is another library's, whose turn comes, and this handle would not keep it loaded. */
static void *own_symbol(void *handle, const struct link_map *module, const char *name) {
  void *address = dlsym(handle, name);
  return module_of(address) == module ? address : NULL;
}

/* The definition in one library, if that is neither this one nor a copy of it: two would call each other for ever. */
static void *foreign_symbol(void *handle, const char *name, const struct link_map *passed_by) {
  struct link_map *module;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &module) != 0 || module == passed_by ||
      own_symbol(handle, module, "sgl_compat_version"))
    return NULL;
  return own_symbol(handle, module, name);
}

static void *search(const char *name) {
  /* A definition that comes before ours in the global scope was passed by on the way here: by an interposed tracer that
   * calls the next one (RTLD_NEXT), which would call us for ever, or by a caller who asked for ours. It may also be the
   * address that stands for our function in a program that is not position-independent. */
  const struct link_map *passed_by = module_of(dlsym(RTLD_DEFAULT, name));
  size_t count;
  char **paths = loaded_paths(&count);
  void *found = NULL;
  for (size_t i = 0; i < count && !found; i++) {
    void *handle = dlopen(paths[i][0] ? paths[i] : NULL, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
      continue;
    found = foreign_symbol(handle, name, passed_by);
    if (!found)
      dlclose(handle);
  }
  loaded_free(paths, count);
  return found;
}

void *forward_find(struct forward *forward, const char *name, const void *site) {
  void *target = atomic_load_explicit(&forward->target, memory_order_acquire);
  if (target)
    return target;
  _Atomic(const void *) *known =
      &forward->sites[((uintptr_t)site * UINT64_C(0x9e3779b97f4a7c15) >> 32) % FORWARD_SITES];
  if (site && atomic_load_explicit(known, memory_order_relaxed) == site)
    return NULL;
  uint64_t generation = loaded_generation();
  if (atomic_load_explicit(&forward->searched, memory_order_acquire) != generation)
    target = search(name);
  if (target) {
    atomic_store_explicit(&forward->target, target, memory_order_release);
    return target;
  }
  atomic_store_explicit(&forward->searched, generation, memory_order_release);
  if (site)
    atomic_store_explicit(known, site, memory_order_relaxed);
  return NULL;
}
