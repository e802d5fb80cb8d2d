#include "shim/tombstone.h"

#include "shim/forward.h"
#include "shim/throw.h"
#include "shim/usage.h"

#include "compat_table.h"
#include "compat_tombstones.h"

#include <errno.h>
#include <stdio.h>

/* Written once each, with a release; read by plain loads in assembler, which are atomic. */
void *tombstone_targets[COMPAT_TOMBSTONES_COUNT + 1];

void *tombstone_find(unsigned number, const void *site) {
  static struct forward forwards[COMPAT_TOMBSTONES_COUNT + 1];
  int saved = errno;
  void *target = forward_find(&forwards[number], compat_tombstones[number].mangled, site);
  if (!target)
    target = forward_find(&forwards[number], compat_tombstones[number].mangled, NULL); /* it may have come since */
  if (target) {
    /* Later calls do not come here, and are not counted. */
    usage_count(usage_site(SGL_COMPAT_CALL_CXX, compat_tombstones[number].symbol, site), SGL_COMPAT_STAGE_TOMBSTONE);
    __atomic_store_n(&tombstone_targets[number], target, __ATOMIC_RELEASE);
  }
  errno = saved;
  return target;
}

void tombstone_throw(unsigned number, const void *site) {
  const struct compat_tombstone *gone = &compat_tombstones[number];
  struct usage_site *counts = usage_site(SGL_COMPAT_CALL_CXX, gone->symbol, site);
  usage_count(counts, SGL_COMPAT_STAGE_TOMBSTONE);
  usage_failed(counts);
  char message[2048];
  snprintf(message, sizeof message, "the C++ function %s is gone, " COMPAT_PACKAGE " has dropped it in %s (%s): %s",
           gone->declaration, gone->first_without, gone->change, gone->advice);
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
