/* SGL_KERNEL_COMPAT_LOG=calls: a line for each call, with the tensors' shapes, into a file of the process. */
#ifndef SGL_COMPAT_CALL_LOG_H
#define SGL_COMPAT_CALL_LOG_H

#include "shim/serve.h"

#include <stdatomic.h>

enum call_log { CALL_LOG_UNKNOWN, CALL_LOG_OFF, CALL_LOG_ON };
extern _Atomic enum call_log call_log_state;

/* Reads the environment, once. */
bool call_log_begin(void);

static inline bool call_log_is_on(void) {
  enum call_log state = atomic_load_explicit(&call_log_state, memory_order_relaxed);
  return state == CALL_LOG_UNKNOWN ? call_log_begin() : state == CALL_LOG_ON;
}

/* face: cxx, operator, or jit for the supported operator. outcome: "ok", "forwarded" (to the old library, which has not
 * run yet), or "error" with the message. torch may be NULL: then the tensors are not told. */
void call_log_write(const struct torch_abi *torch, enum serve_kernel kernel, void *const tensors[], const char *face,
                    const char *outcome, const char *message);

/* A call whose arguments nobody here can read; more: members of the line in JSON, or NULL. */
void call_log_line(const char *symbol, const char *face, const char *outcome, const char *message, const char *more);

#endif
