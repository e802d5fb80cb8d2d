#include "shim/throw.h"

#include "shim/loaded.h"
#include "shim/torch_abi.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

void throw_error(const char *function, const char *message) {
  int saved = errno;
  const struct torch_abi *torch = torch_abi_get();
  if (torch)
    torch->check(false, function, __FILE__, __LINE__, message);
  /* std::__throw_runtime_error(char const *): what libstdc++'s own headers call, in every version since GLIBCXX_3.4. */
  static const char helper[] = "_ZSt21__throw_runtime_errorPKc";
  static _Atomic(void *) found;
  void *handle, *throw_runtime_error = atomic_load_explicit(&found, memory_order_acquire);
  if (!throw_runtime_error && loaded_open("libstdc++.so.6", helper, &handle)) { /* and never closed */
    throw_runtime_error = dlsym(handle, helper);
    atomic_store_explicit(&found, throw_runtime_error, memory_order_release);
  }
  errno = saved;
  if (throw_runtime_error)
    ((void (*)(const char *))throw_runtime_error)(message);
  dprintf(STDERR_FILENO, "sgl-kernel-compat: a call did nothing, and nobody here can catch why: %s\n", message);
  errno = saved;
}
