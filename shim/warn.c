#include "shim/warn.h"

#include "shim/job.h"

#include "compat_table.h"
#include "compat_tombstones.h"

#include <pthread.h>
#include <stdatomic.h>
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

/* --- the warning -------------------------------------------------------------------------------------------------- */

/* "libmodel.so+0x1234 (symbol+0x56)" */
static void describe(struct usage_site *site, const void *address, char *text, size_t size) {
  const struct usage_caller *caller = usage_caller(site, address);
  if (!caller || !caller->file[0]) {
    snprintf(text, size, "%p, which is in no loaded file", (const void *)((const char *)address - 1));
    return;
  }
  const char *slash = strrchr(caller->file, '/');
  const char *file = slash ? slash + 1 : caller->file;
  if (caller->function[0])
    snprintf(text, size, "%s+0x%lx (%s+0x%lx)", file, caller->offset, caller->function, caller->function_offset);
  else
    snprintf(text, size, "%s+0x%lx", file, caller->offset);
}

void warn_text(sgl_compat_call call, unsigned symbol, char *text, size_t size, const char **advice) {
  const char *change = "", *first_without = "", *name = compat_symbols[symbol].id;
  *advice = "";
  for (unsigned i = 0; call == SGL_COMPAT_CALL_CXX && i < compat_entries_count; i++)
    if (compat_entries[i].symbol == symbol) {
      name = compat_entries[i].name;
      *advice = compat_entries[i].advice;
      change = compat_entries[i].change;
      first_without = compat_entries[i].first_without;
    }
  for (unsigned i = 0; call == SGL_COMPAT_CALL_CXX && i < COMPAT_TOMBSTONES_COUNT; i++)
    if (compat_tombstones[i].symbol == symbol) {
      *advice = compat_tombstones[i].advice;
      change = compat_tombstones[i].change;
      first_without = compat_tombstones[i].first_without;
    }
  for (unsigned i = 0; call == SGL_COMPAT_CALL_OPERATOR && i < compat_operators_count; i++)
    if (compat_operators[i].symbol == symbol) {
      name = compat_operators[i].name;
      *advice = compat_operators[i].advice;
      change = compat_operators[i].change;
      first_without = compat_operators[i].first_without;
    }
  snprintf(text, size, "the %s%s is deprecated, " COMPAT_PACKAGE " has dropped it in %s (%s): %s",
           call == SGL_COMPAT_CALL_CXX ? "C++ function " : "operator torch.ops." COMPAT_OP_NAMESPACE ".", name,
           first_without, change, *advice);
}

/* On RAISE, error has the text. */
static sgl_compat_warning_action warn(sgl_compat_call call, unsigned symbol, struct usage_site *site,
                                      const void *address, char *error, size_t error_size) {
  const char *advice;
  char caller[512];
  describe(site, address, caller, sizeof caller);
  warn_text(call, symbol, error, error_size, &advice);
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
    sgl_compat_warning warning = {call, compat_symbols[symbol].id, advice, caller, text, error, error_size};
    action = current(&warning, user);
  }
  if (action == SGL_COMPAT_WARNING_PRINT && job_is_first_rank())
    dprintf(STDERR_FILENO, "%s\n", text);
  return action;
}

bool warn_call(sgl_compat_call call, unsigned symbol, struct usage_site *site, const void *address, char *message,
               size_t message_size) {
  int now = atomic_load_explicit(&mode, memory_order_relaxed);
  if (now == SGL_COMPAT_WARNINGS_OFF || atomic_load_explicit(&site->warned, memory_order_relaxed))
    return true;
  if (now == FROM_ENVIRONMENT && mode_from_environment() == SGL_COMPAT_WARNINGS_OFF)
    return true;
  if (atomic_exchange(&site->warned, true))
    return true; /* another thread does */
  if (warn(call, symbol, site, address, message, message_size) != SGL_COMPAT_WARNING_RAISE)
    return true;
  atomic_store(&site->warned, false);
  return false;
}
