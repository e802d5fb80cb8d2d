/* The same function in another loaded library. */
#ifndef SGL_COMPAT_FORWARD_H
#define SGL_COMPAT_FORWARD_H

#include <stdatomic.h>
#include <stdint.h>

/* One for each exported function; starts as zeros. */
struct forward {
  _Atomic(void *) target;
  _Atomic uint64_t searched; /* loaded_generation of the last search that found nothing */
};

/* The definition of `name` in another library than this one (an old wheel, whose working kernel must not be replaced by
 * us just because we come first in the global scope), or NULL. Once found it stays, and so does its library. Before
 * that the loaded objects are searched again whenever something has been loaded since the last call: an old wheel may
 * come late. That costs 20 ns a call, and 2 ms a search in a Python process with torch (430 objects). Another copy of
 * this library does not count, nor does what comes before this library in the global scope. Thread-safe, holds no lock
 * of its own. May change errno. */
void *forward_find(struct forward *forward, const char *name);

#endif
