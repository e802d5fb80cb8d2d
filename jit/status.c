/* Status names, the version, and the message that goes with a status. */
#include "internal.h"
#include <stdarg.h>
#include <stdio.h>

const char *sgl_jit_version(void) {
#define TEXT(x) #x
#define DOTTED(a, b, c) TEXT(a) "." TEXT(b) "." TEXT(c)
  return DOTTED(SGL_JIT_VERSION_MAJOR, SGL_JIT_VERSION_MINOR, SGL_JIT_VERSION_PATCH);
}

const char *sgl_jit_status_name(sgl_jit_status status) {
  switch (status) {
#define NAME(s)                                                                                                        \
  case s:                                                                                                              \
    return #s
    NAME(SGL_JIT_OK);
    NAME(SGL_JIT_ERROR_INVALID_ARGUMENT);
    NAME(SGL_JIT_ERROR_UNSUPPORTED);
    NAME(SGL_JIT_ERROR_NO_DRIVER);
    NAME(SGL_JIT_ERROR_NO_COMPILER);
    NAME(SGL_JIT_ERROR_COMPILE);
    NAME(SGL_JIT_ERROR_LOAD);
    NAME(SGL_JIT_ERROR_LAUNCH);
    NAME(SGL_JIT_ERROR_OUT_OF_MEMORY);
    NAME(SGL_JIT_ERROR_CAPTURE);
    NAME(SGL_JIT_ERROR_INTERNAL);
    NAME(SGL_JIT_ERROR_CACHE);
    NAME(SGL_JIT_ERROR_REFUSED);
    NAME(SGL_JIT_ERROR_NO_CUBLASLT);
  }
  return "SGL_JIT_ERROR_UNKNOWN";
}

sgl_jit_status jit_fail(struct jit_message m, sgl_jit_status status, const char *format, ...) {
  if (m.text && m.size) {
    int prefix = m.function ? snprintf(m.text, m.size, "%s: ", m.function) : 0;
    if (prefix >= 0 && (size_t)prefix < m.size) {
      va_list arguments;
      va_start(arguments, format);
      vsnprintf(m.text + prefix, m.size - (size_t)prefix, format, arguments);
      va_end(arguments);
    }
    for (char *c = m.text; *c; c++) /* one line, whatever a compiler or driver said */
      if (*c == '\n' || *c == '\r')
        *c = ' ';
  }
  return status;
}
