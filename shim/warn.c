#include "shim/warn.h"

#include "shim/job.h"

#include "compat_table.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- settings ----------------------------------------------------------------------------------------------------- */

enum { FROM_ENVIRONMENT = -1 };
static atomic_int mode = FROM_ENVIRONMENT;

static pthread_mutex_t hook_lock = PTHREAD_MUTEX_INITIALIZER;
static sgl_compat_warning_hook hook;
static void *hook_user;

void sgl_compat_set_warning_hook(sgl_compat_warning_hook new_hook, void *user) {
  pthread_mutex_lock(&hook_lock);
  hook = new_hook;
  hook_user = user;
  pthread_mutex_unlock(&hook_lock);
}

sgl_compat_status sgl_compat_set_warnings(sgl_compat_warnings new_mode, char *message, size_t message_size) {
  if (new_mode != SGL_COMPAT_WARNINGS_OFF && new_mode != SGL_COMPAT_WARNINGS_ONCE) {
    snprintf(message, message_size, "sgl_compat_set_warnings: mode %d is neither SGL_COMPAT_WARNINGS_OFF nor _ONCE",
             (int)new_mode);
    return SGL_COMPAT_ERROR_INVALID_ARGUMENT;
  }
  atomic_store(&mode, new_mode);
  return SGL_COMPAT_OK;
}

static int mode_from_environment(void) {
  const char *value = getenv("SGL_KERNEL_COMPAT_WARN");
  int chosen = value && strcmp(value, "off") == 0 ? SGL_COMPAT_WARNINGS_OFF : SGL_COMPAT_WARNINGS_ONCE;
  int expected = FROM_ENVIRONMENT;
  if (!atomic_compare_exchange_strong(&mode, &expected, chosen))
    return expected; /* set by the API or another thread meanwhile */
  if (value && value[0] && chosen == SGL_COMPAT_WARNINGS_ONCE && strcmp(value, "once") != 0)
    dprintf(STDERR_FILENO, "sgl-kernel-compat: SGL_KERNEL_COMPAT_WARN=%s is neither off nor once; taking once\n",
            value);
  return chosen;
}

/* --- call sites --------------------------------------------------------------------------------------------------- */

/* A set of call sites that only grows, open addressing. A key is the return address with the kernel and the kind of
 * call in the top byte, where addresses of user programs have zeros. The top bit says that the site has to warn again.
 */
enum { SITES = 1024, PROBES = 16 };
#define AGAIN ((uintptr_t)1 << 63)
static _Atomic uintptr_t sites[SITES];
_Static_assert(1 + 2 * SERVE_COUNT < 128, "the kernel and the kind of call fit into seven bits");
_Static_assert(sizeof(uintptr_t) == 8, "addresses leave their top byte free");

static uintptr_t key_of(sgl_compat_call call, enum serve_kernel kernel, const void *site) {
  uintptr_t tag = 1 + 2 * (uintptr_t)kernel + (call == SGL_COMPAT_CALL_OPERATOR);
  return ((uintptr_t)site & (UINTPTR_MAX >> 8)) | tag << 56;
}

/* The place of a key, taken for it if it was not there; NULL when all its places are taken by others. `is_new` says
 * whether this caller is the one to warn. */
static _Atomic uintptr_t *site_of(uintptr_t key, bool *is_new) {
  size_t start = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32); /* Fibonacci hashing */
  for (size_t probe = 0; probe < PROBES; probe++) {
    _Atomic uintptr_t *place = &sites[(start + probe) % SITES];
    uintptr_t seen = atomic_load_explicit(place, memory_order_relaxed);
    while (seen == 0 || seen == (key | AGAIN)) {
      if (atomic_compare_exchange_weak(place, &seen, key)) {
        *is_new = true;
        return place;
      }
    }
    if (seen == key) {
      *is_new = false;
      return place;
    }
  }
  return NULL;
}

/* --- the warning -------------------------------------------------------------------------------------------------- */

/* "libmodel.so+0x1234 (symbol+0x56)". The address is that of the call, one before the return address, so that addr2line
 * tells the line of the call. */
static void describe(const void *site, char *text, size_t size) {
  const char *call = (const char *)site - 1;
  Dl_info info;
  if (!dladdr(call, &info) || !info.dli_fname) {
    snprintf(text, size, "%p, which is in no loaded file", (const void *)call);
    return;
  }
  const char *slash = strrchr(info.dli_fname, '/');
  const char *file = slash ? slash + 1 : info.dli_fname;
  unsigned long offset = (unsigned long)(call - (const char *)info.dli_fbase);
  if (info.dli_sname)
    snprintf(text, size, "%s+0x%lx (%s+0x%lx)", file, offset, info.dli_sname,
             (unsigned long)(call - (const char *)info.dli_saddr));
  else
    snprintf(text, size, "%s+0x%lx", file, offset);
}

void warn_text(sgl_compat_call call, const char *name, char *text, size_t size, const char **advice) {
  const char *change = "", *first_without = "";
  *advice = "";
  for (unsigned i = 0; call == SGL_COMPAT_CALL_CXX && i < compat_entries_count; i++)
    if (strcmp(compat_entries[i].id, name) == 0) {
      *advice = compat_entries[i].advice;
      change = compat_entries[i].change;
      first_without = compat_entries[i].first_without;
    }
  for (unsigned i = 0; call == SGL_COMPAT_CALL_OPERATOR && i < compat_operators_count; i++)
    if (strcmp(compat_operators[i].id, name) == 0) {
      *advice = compat_operators[i].advice;
      change = compat_operators[i].change;
      first_without = compat_operators[i].first_without;
    }
  snprintf(text, size, "the %s%s is deprecated, " COMPAT_PACKAGE " has dropped it in %s (%s): %s",
           call == SGL_COMPAT_CALL_CXX ? "C++ function " : "operator torch.ops." COMPAT_OP_NAMESPACE ".", name,
           first_without, change, *advice);
}

/* On RAISE, error has the text. */
static sgl_compat_warning_action warn(sgl_compat_call call, const char *name, const void *site, char *error,
                                      size_t error_size) {
  const char *advice;
  char caller[512];
  describe(site, caller, sizeof caller);
  warn_text(call, name, error, error_size, &advice);
  char text[SERVE_MESSAGE + sizeof caller];
  /* An operator's caller is torch's dispatcher, always. */
  snprintf(text, sizeof text, "sgl-kernel-compat: warning: %s%s%s", error,
           call == SGL_COMPAT_CALL_CXX ? "; called from " : "", call == SGL_COMPAT_CALL_CXX ? caller : "");

  pthread_mutex_lock(&hook_lock);
  sgl_compat_warning_hook current = hook;
  void *user = hook_user;
  pthread_mutex_unlock(&hook_lock);
  sgl_compat_warning_action action = SGL_COMPAT_WARNING_PRINT;
  if (current) {
    sgl_compat_warning warning = {call, name, advice, caller, text, error, error_size};
    action = current(&warning, user);
  }
  if (action == SGL_COMPAT_WARNING_PRINT && job_is_first_rank())
    dprintf(STDERR_FILENO, "%s\n", text);
  return action;
}

bool warn_call(sgl_compat_call call, enum serve_kernel kernel, const void *site, char *message, size_t message_size) {
  int now = atomic_load_explicit(&mode, memory_order_relaxed);
  if (now == SGL_COMPAT_WARNINGS_OFF)
    return true;
  bool go_on = true, is_new;
  if (now != FROM_ENVIRONMENT || mode_from_environment() != SGL_COMPAT_WARNINGS_OFF) {
    uintptr_t key = key_of(call, kernel, site);
    _Atomic uintptr_t *place = site_of(key, &is_new);
    /* Without a place nothing is said: a program with that many call sites has been told often enough. */
    if (place && is_new && warn(call, serve_name(kernel), site, message, message_size) == SGL_COMPAT_WARNING_RAISE) {
      atomic_store(place, key | AGAIN);
      go_on = false;
    }
  }
  return go_on;
}
