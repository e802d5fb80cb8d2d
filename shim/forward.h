/* The same function in another loaded library. */
#ifndef SGL_COMPAT_FORWARD_H
#define SGL_COMPAT_FORWARD_H

#include <stdatomic.h>
#include <stdint.h>

enum { FORWARD_SITES = 8 };

/* One for each exported function; starts as zeros. */
struct forward {
  _Atomic(void *) target;
  _Atomic uint64_t searched; /* loaded_generation of the last search that found nothing */
  _Atomic(const void *) sites[FORWARD_SITES];
};

/* The definition of `name` in another library than this one (an old wheel, whose working kernel must not be replaced by
 * us just because we come first in the global scope), or NULL. Once found it stays, and so does its library. Another
 * copy of this library does not count, nor does what comes before this library in the global scope.
 *
 * The loaded objects are looked through for a call from a site (its return address) that is not among the last ones,
 * and for site NULL, if something has been loaded since the last look: an old wheel may come late. A site that has been
 * served here before it came was bound to us when there was nobody else; it goes on being served, without the loader's
 * lock in every call, until any other site finds the wheel. A caller that is about to fail asks again with site NULL.
 * To ask whether something has been loaded takes 20 ns and that lock, a search 2 ms in a Python process with torch (430
 * objects). Thread-safe, holds no lock of its own. May change errno. */
void *forward_find(struct forward *forward, const char *name, const void *site);

#endif
