#include "shim/include/sgl_kernel_compat.h"

const char *sgl_compat_version(void) {
  return SGL_VERSION;
}

const char *sgl_compat_status_name(sgl_compat_status status) {
  switch (status) {
  case SGL_COMPAT_OK:
    return "SGL_COMPAT_OK";
  case SGL_COMPAT_ERROR_INVALID_ARGUMENT:
    return "SGL_COMPAT_ERROR_INVALID_ARGUMENT";
  case SGL_COMPAT_ERROR_NO_TORCH:
    return "SGL_COMPAT_ERROR_NO_TORCH";
  case SGL_COMPAT_ERROR_TORCH_TOO_OLD:
    return "SGL_COMPAT_ERROR_TORCH_TOO_OLD";
  case SGL_COMPAT_ERROR_REGISTRATION:
    return "SGL_COMPAT_ERROR_REGISTRATION";
  case SGL_COMPAT_ERROR_WRITE:
    return "SGL_COMPAT_ERROR_WRITE";
  }
  return "unknown status";
}
