#include "scanner/changed.h"

#include <stdlib.h>
#include <string.h>

/* --- the catalog -------------------------------------------------------------------------------------------------- */

static bool is_function(const struct catalog_change *change) {
  return change->what == CATALOG_CHANGED_PYTHON || change->what == CATALOG_CHANGED_OPERATOR ||
         change->what == CATALOG_CHANGED_CXX;
}

static int by_id(const void *a, const void *b) {
  return strcmp(((const struct catalog_symbol *)a)->id, ((const struct catalog_symbol *)b)->id);
}

/* Texts of the catalog may be sentences. */
static int without_stop(const char *text) {
  size_t length = strlen(text);
  return (int)(length - (length && text[length - 1] == '.'));
}

/* What a report says of the name: a line for each change. */
static void tell_changes(const struct catalog *catalog, struct catalog_symbol *symbol, const char *name) {
  char **lines = NULL;
  for (unsigned i = 0; i < catalog->changes_count; i++) {
    const struct catalog_change *change = &catalog->changes[i];
    if (strcmp(change->name, name) != 0 || !is_function(change))
      continue;
    lines = scan_alloc(lines, (symbol->traps_count + 1) * sizeof *lines);
    lines[symbol->traps_count++] =
        scan_format("%s from %s on: %.*s%s%.*s.", change->id, change->release, without_stop(change->reason),
                    change->reason, *change->remedy ? "; " : "", without_stop(change->remedy), change->remedy);
  }
  symbol->traps = (const char *const *)lines;
}

struct catalog *changed_catalog(const struct catalog *catalog) {
  struct catalog *extended = scan_alloc(NULL, sizeof *extended);
  struct catalog_symbol *symbols =
      scan_alloc(NULL, (catalog->symbols_count + catalog->changes_count + 1) * sizeof *symbols);
  unsigned count = catalog->symbols_count;
  if (count)
    memcpy(symbols, catalog->symbols, count * sizeof *symbols);
  for (unsigned i = 0; i < catalog->changes_count; i++) {
    const char *name = catalog->changes[i].name;
    bool known = !is_function(&catalog->changes[i]);
    for (unsigned k = catalog->symbols_count; k < count && !known; k++)
      known = strcmp(symbols[k].id + strlen(CHANGED_PREFIX), name) == 0;
    if (known)
      continue;
    symbols[count] =
        (struct catalog_symbol){.id = scan_format(CHANGED_PREFIX "%s", name),
                                .status = CATALOG_SIGNATURE_CHANGED,
                                .family = "changed",
                                .summary = "Still there, with other arguments or another result than before.",
                                .python_signature = "",
                                .op_name = "",
                                .op_schema = "",
                                .cxx = {.name = "", .scope = "", .declaration = "", .mangled = ""},
                                .added_in = "",
                                .stage = "silent"};
    tell_changes(catalog, &symbols[count++], name);
  }
  if (count)
    qsort(symbols, count, sizeof *symbols, by_id);
  *extended = *catalog;
  extended->symbols = symbols;
  extended->symbols_count = count;
  return extended;
}

void changed_catalog_free(struct catalog *extended) {
  for (unsigned i = 0; extended && i < extended->symbols_count; i++) {
    const struct catalog_symbol *symbol = &extended->symbols[i];
    if (strncmp(symbol->id, CHANGED_PREFIX, strlen(CHANGED_PREFIX)) != 0)
      continue;
    for (unsigned k = 0; k < symbol->traps_count; k++)
      free((void *)(uintptr_t)symbol->traps[k]);
    free((void *)(uintptr_t)symbol->traps);
    free((void *)(uintptr_t)symbol->id);
  }
  if (extended)
    free((void *)(uintptr_t)extended->symbols);
  free(extended);
}

const struct catalog_symbol *changed_symbol(const struct scan *scan, const struct catalog_change *change) {
  char *id = scan_format(CHANGED_PREFIX "%s", change->name);
  const struct catalog_symbol *symbol = catalog_find(scan->catalog, id);
  free(id);
  return symbol;
}

/* --- one function ------------------------------------------------------------------------------------------------- */

static bool on_platform(const struct catalog_change *change, enum catalog_platform platform) {
  bool there = change->platforms_count == 0;
  for (unsigned i = 0; i < change->platforms_count; i++)
    there = there || change->platforms[i] == platform;
  return there;
}

static bool has_module(const struct catalog_change *change, const char *module) {
  bool there = !module;
  for (unsigned i = 0; i < change->modules_count; i++)
    there = there || strcmp(change->modules[i], module) == 0;
  return there;
}

static int by_release(const void *left, const void *right) {
  const struct catalog_change *const *a = left, *const *b = right;
  return catalog_version_compare((*a)->release, (*b)->release);
}

void changed_find(const struct scan *scan, enum catalog_changed what, const char *module, const char *name,
                  struct changed *changed) {
  static const enum catalog_platform platforms[] = {CATALOG_CUDA, CATALOG_ROCM, CATALOG_MUSA, CATALOG_XPU, CATALOG_CPU};
  changed->count = 0;
  for (size_t p = 0; p < sizeof platforms / sizeof *platforms && changed->count == 0; p++)
    for (unsigned i = 0; i < scan->catalog->changes_count; i++) {
      const struct catalog_change *change = &scan->catalog->changes[i];
      if (change->what == what && strcmp(change->name, name) == 0 && has_module(change, module) &&
          on_platform(change, platforms[p]) && catalog_version_compare(change->release, scan->options.kernel) <= 0 &&
          changed->count < sizeof changed->list / sizeof *changed->list)
        changed->list[changed->count++] = change;
    }
  if (changed->count)
    qsort(changed->list, changed->count, sizeof *changed->list, by_release);
}

char *changed_message(const struct catalog_change *change, const char *first, const char *why) {
  const char *text = *why ? why : change->reason;
  return scan_format("%s has another form from %s%s%s%s on: %s%s%.*s%s%.*s", change->name, change->release,
                     change->change ? " (" : "", change->change ? change->change : "", change->change ? ")" : "", first,
                     *first ? "; " : "", without_stop(text), text, *change->remedy ? "; " : "",
                     without_stop(change->remedy), change->remedy);
}

static bool given(const struct catalog_signature *signature, const struct catalog_call *call, const char *name) {
  size_t length = strlen(name);
  for (unsigned i = 0; i < call->keywords_count; i++)
    if (call->keywords[i].length == length && memcmp(call->keywords[i].text, name, length) == 0)
      return true;
  for (unsigned i = 0; i < call->positional && i < signature->count; i++)
    if (signature->parameters[i].name.length == length && memcmp(signature->parameters[i].name.text, name, length) == 0)
      return true;
  return false;
}

static bool has(const struct catalog_signature *signature, struct catalog_slice name) {
  for (unsigned i = 0; i < signature->count; i++)
    if (signature->parameters[i].name.length == name.length &&
        memcmp(signature->parameters[i].name.text, name.text, name.length) == 0)
      return true;
  return false;
}

/* May a call break whose keywords are not all known: one that is gone may be among them, or a new one may be missing?
 */
static bool may_break(const struct catalog_signature *before, const struct catalog_signature *newest,
                      const struct catalog_call *call) {
  for (unsigned i = call->positional; i < before->count; i++)
    if (!has(newest, before->parameters[i].name))
      return true;
  for (unsigned i = call->positional; i < newest->count; i++) {
    const struct catalog_parameter *parameter = &newest->parameters[i];
    bool named = false;
    for (unsigned k = 0; k < call->keywords_count; k++)
      named = named || (call->keywords[k].length == parameter->name.length &&
                        memcmp(call->keywords[k].text, parameter->name.text, parameter->name.length) == 0);
    if (!parameter->value.length && !named && !has(before, parameter->name))
      return true;
  }
  return false;
}

static bool breaks_calls(const struct catalog_change *change) {
  return change->breaks == CATALOG_BREAKS_CALLS || change->breaks == CATALOG_BREAKS_RESULT ||
         change->breaks == CATALOG_BREAKS_SILENT;
}

/* Does a call that fits both forms get something else from the new one? */
static bool differs(const struct catalog_change *change, const struct catalog_signature *before,
                    const struct catalog_signature *after, const struct catalog_call *call, char *why, size_t size) {
  *why = '\0';
  if (change->what == CATALOG_CHANGED_CXX)
    return false; /* its arguments go by their types, which a compiler knows */
  if (change->breaks == CATALOG_BREAKS_SILENT)
    return change->when_given      ? given(after, call, change->when_given)
           : change->when_left_out ? !given(after, call, change->when_left_out)
                                   : true;
  return change->breaks == CATALOG_BREAKS_RESULT || !catalog_call_same(before, after, call, why, size);
}

char *changed_judge(const struct changed *changed, const struct catalog_call *call, enum level *level) {
  static const char untold[] = "the arguments of this call cannot be told";
  struct catalog_signature before, after, now;
  char why[300];
  *level = LEVEL_WARNING;
  if (!call) {
    for (unsigned i = changed->count; i-- > 0;)
      if (breaks_calls(changed->list[i]))
        return changed_message(changed->list[i], untold, "");
    return NULL;
  }
  const struct catalog_change *newest = changed->count ? changed->list[changed->count - 1] : NULL, *broke = NULL;
  if (!newest || !catalog_signature_read(newest->what, newest->after, &now))
    return NULL;
  if (newest->what == CATALOG_CHANGED_CXX &&
      (now.name.length != strlen(newest->name) || memcmp(now.name.text, newest->name, now.name.length) != 0)) {
    *level = LEVEL_ERROR;
    return changed_message(newest, "", "");
  }
  if (!catalog_call_fits(&now, call, why, sizeof why)) {
    char other[300];
    for (unsigned i = changed->count; i-- > 0 && !broke;)
      if (catalog_signature_read(newest->what, changed->list[i]->before, &before) &&
          catalog_call_fits(&before, call, other, sizeof other))
        broke = changed->list[i];
    *level = LEVEL_ERROR;
    return changed_message(broke ? broke : newest, "", why);
  }
  for (unsigned i = changed->count; i-- > 0;) {
    const struct catalog_change *change = changed->list[i];
    char other[300];
    if (!catalog_signature_read(change->what, change->before, &before) ||
        !catalog_signature_read(change->what, change->after, &after) ||
        !catalog_call_fits(&before, call, other, sizeof other))
      return NULL; /* written for the new form */
    if (call->more && may_break(&before, &now, call))
      return changed_message(change, untold, "");
    if (differs(change, &before, &after, call, why, sizeof why))
      return changed_message(change, "", why);
  }
  return NULL;
}
