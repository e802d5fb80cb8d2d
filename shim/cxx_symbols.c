/* The deleted C++ functions, in C. `at::Tensor &` arrives as a pointer to the at::Tensor, which is what torch's C
 * functions take; the names have no std types, so they are the same for both C++11 ABIs of libstdc++. */
#include "shim/forward.h"
#include "shim/include/sgl_kernel_compat.h"
#include "shim/serve.h"
#include "shim/throw.h"
#include "shim/warn.h"

#include "compat_table.h"

#include <errno.h>
#include <stdio.h>

typedef void three_tensors(void *output, const void *mat_a, const void *mat_b);

SGL_COMPAT_API three_tensors dsv3_router_gemm __asm__(COMPAT_MANGLED_dsv3_router_gemm);
SGL_COMPAT_API three_tensors dsv3_fused_a_gemm __asm__(COMPAT_MANGLED_dsv3_fused_a_gemm);

static void serve(enum serve_kernel kernel, const char *mangled, struct forward *forward, const void *site,
                  void *output, const void *mat_a, const void *mat_b) {
  int saved = errno;
  three_tensors *elsewhere = (three_tensors *)forward_find(forward, mangled, site);
  if (elsewhere) {
    errno = saved;
    elsewhere(output, mat_a, mat_b);
    return;
  }
  char message[SERVE_MESSAGE];
  bool done = false;
  if (warn_call(SGL_COMPAT_CALL_CXX, kernel, site, message, sizeof message)) {
    const struct torch_abi *torch = torch_abi_get();
    void *const tensors[3] = {output, (void *)mat_a, (void *)mat_b};
    if (torch)
      done = serve_run(torch, kernel, tensors, message, sizeof message);
    else
      snprintf(message, sizeof message,
               "%s: this process has no libtorch_cpu.so, so its tensors cannot be read; load torch 2.6 or newer before "
               "the call",
               serve_name(kernel));
  }
  if (!done)
    elsewhere = (three_tensors *)forward_find(forward, mangled, NULL); /* somebody else may be able to */
  errno = saved;
  if (elsewhere)
    elsewhere(output, mat_a, mat_b);
  else if (!done)
    throw_error(serve_name(kernel), message);
}

void dsv3_router_gemm(void *output, const void *mat_a, const void *mat_b) {
  static struct forward forward;
  serve(SERVE_DSV3_ROUTER_GEMM, COMPAT_MANGLED_dsv3_router_gemm, &forward, __builtin_return_address(0), output, mat_a,
        mat_b);
}

void dsv3_fused_a_gemm(void *output, const void *mat_a, const void *mat_b) {
  static struct forward forward;
  serve(SERVE_DSV3_FUSED_A_GEMM, COMPAT_MANGLED_dsv3_fused_a_gemm, &forward, __builtin_return_address(0), output, mat_a,
        mat_b);
}
