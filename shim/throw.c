#include "shim/throw.h"

#include "shim/loaded.h"
#include "shim/torch_abi.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

void throw_error(const char *function, const char *message) {
  int saved = errno;
  const struct torch_abi *torch = torch_abi_get();
  if (torch)
    torch->check(false, function, __FILE__, __LINE__, message);
  /* std::__throw_runtime_error(char const *): what libstdc++'s own headers call, in every version since GLIBCXX_3.4. */
  static const char helper[] = "_ZSt21__throw_runtime_errorPKc";
  void *handle;
  if (loaded_open("libstdc++.so.6", helper, &handle)) {
    void (*throw_runtime_error)(const char *) = (void (*)(const char *))dlsym(handle, helper);
    errno = saved;
    throw_runtime_error(message);
  }
  dprintf(STDERR_FILENO, "sgl-kernel-compat: %s did nothing: %s\n", function, message);
  errno = saved;
}
