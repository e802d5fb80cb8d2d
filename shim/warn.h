/* One deprecation warning for each deleted name and call site. */
#ifndef SGL_COMPAT_WARN_H
#define SGL_COMPAT_WARN_H

#include "shim/include/sgl_kernel_compat.h"
#include "shim/serve.h"
#include "shim/usage.h"

/* Warn about a call unless its site has warned before. `address` is the return address of the deprecated call. Returns
 * false when the hook wants the call to fail; the text is then in message. May change errno. */
bool warn_call(sgl_compat_call call, unsigned symbol, struct usage_site *site, const void *address, char *message,
               size_t message_size);

/* "the C++ function NAME is deprecated, ...: ADVICE", and the advice alone. */
void warn_text(sgl_compat_call call, unsigned symbol, char *text, size_t size, const char **advice);

#endif
