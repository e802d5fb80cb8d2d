#include "shim/tombstone.h"

#include "shim/call_log.h"
#include "shim/forward.h"
#include "shim/stage.h"
#include "shim/throw.h"
#include "shim/usage.h"

#include "compat_table.h"
#include "compat_tombstones.h"

#include <errno.h>
#include <stdio.h>

/* Written once each, with a release; read by plain loads in assembler, which are atomic. */
void *tombstone_targets[COMPAT_TOMBSTONES_COUNT + 1];

static bool is_forbidden(uint8_t policy) {
  return policy & POLICY_IS_SET && policy_stage(policy) >= SGL_COMPAT_STAGE_ERROR;
}

/* A target for good, where no stage is set: later calls do not come here, and are not counted. */
static void keep(unsigned number, void *target) {
  __atomic_store_n(&tombstone_targets[number], target, __ATOMIC_SEQ_CST);
  if (policy_of(compat_tombstones[number].symbol) & POLICY_IS_SET) /* since tombstone_forget */
    __atomic_store_n(&tombstone_targets[number], NULL, __ATOMIC_SEQ_CST);
}

void *tombstone_find(unsigned number, const void *site) {
  static struct forward forwards[COMPAT_TOMBSTONES_COUNT + 1];
  int saved = errno;
  unsigned symbol = compat_tombstones[number].symbol;
  uint8_t policy = policy_of(symbol);
  void *target = forward_find(&forwards[number], compat_tombstones[number].mangled, site);
  if (!target)
    target = forward_find(&forwards[number], compat_tombstones[number].mangled, NULL); /* it may have come since */
  if (target && !is_forbidden(policy)) {
    char message[SERVE_MESSAGE];
    struct usage_site *counts = usage_site(SGL_COMPAT_CALL_CXX, symbol, site);
    bool is_set = policy & POLICY_IS_SET, is_logged = call_log_is_on();
    if (is_set && !stage_call(SGL_COMPAT_CALL_CXX, symbol, policy, counts, site, message, sizeof message))
      target = NULL;
    else if (!is_set && !is_logged)
      keep(number, target);
    if (target && is_logged)
      call_log_line(compat_symbols[symbol].id, "cxx", "forwarded", NULL, NULL);
    if (target)
      usage_count(counts, is_set ? policy_stage(policy) : SGL_COMPAT_STAGE_SILENT); /* nothing is said, and it works */
  } else {
    target = NULL;
  }
  errno = saved;
  return target;
}

void tombstone_forget(void) {
  for (unsigned i = 0; i < COMPAT_TOMBSTONES_COUNT; i++)
    __atomic_store_n(&tombstone_targets[i], NULL, __ATOMIC_SEQ_CST);
}

void tombstone_throw(unsigned number, const void *site) {
  const struct compat_tombstone *gone = &compat_tombstones[number];
  struct usage_site *counts = usage_site(SGL_COMPAT_CALL_CXX, gone->symbol, site);
  uint8_t policy = policy_of(gone->symbol);
  usage_count(counts, is_forbidden(policy) ? policy_stage(policy) : SGL_COMPAT_STAGE_TOMBSTONE);
  usage_failed(counts);
  char message[2048];
  if (is_forbidden(policy))
    stage_call(SGL_COMPAT_CALL_CXX, gone->symbol, policy, counts, site, message, sizeof message);
  else
    snprintf(message, sizeof message, "the C++ function %s is gone, " COMPAT_PACKAGE " has dropped it in %s (%s): %s",
             gone->declaration, gone->first_without, gone->change, gone->advice);
  if (call_log_is_on())
    call_log_line(compat_symbols[gone->symbol].id, "cxx", "error", message, NULL);
  throw_error(compat_symbols[gone->symbol].id, message);
}

#ifndef __x86_64__
/* Without tombstone_entry.S: not forwarded, since C cannot pass on arguments that it does not know. */
#define DEFINE(number, name)                                                                                           \
  __attribute__((visibility("default"))) void name(void);                                                              \
  void name(void) {                                                                                                    \
    tombstone_throw(number, __builtin_return_address(0));                                                              \
  }
COMPAT_TOMBSTONES(DEFINE)
#endif
