/* What the policy does to a call of a deleted name. */
#ifndef SGL_COMPAT_STAGE_H
#define SGL_COMPAT_STAGE_H

#include "shim/policy.h"
#include "shim/serve.h"
#include "shim/usage.h"

/* Nothing, a warning (warn.c), or an end: false, with the text in message. policy: policy_of of the symbol.
 * `address` is the return address of the deprecated call. May change errno. */
bool stage_call(sgl_compat_call call, unsigned symbol, uint8_t policy, struct usage_site *site, const void *address,
                char *message, size_t message_size);

/* The text for a call that only an old library may serve, by the policy, when there is none. */
void stage_no_library(enum serve_kernel kernel, char *message, size_t message_size);

#endif
