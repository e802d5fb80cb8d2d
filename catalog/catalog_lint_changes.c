/* Proves one row of the catalog's changes: tests/catalog/data/lint has a broken catalog for each message. What a change
 * breaks is worked out from the two signatures, and the row has to say the same. */
#include "catalog/catalog_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct check {
  const struct catalog *catalog;
  const struct catalog_change *change;
  catalog_change_fault *report;
  void *user;
};

__attribute__((format(printf, 3, 4))) static void fault(struct check *check, const char *key, const char *format, ...) {
  char what[700];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  check->report(check->user, key, what);
}

static bool is_signature(const struct catalog_change *change) {
  return change->what == CATALOG_CHANGED_PYTHON || change->what == CATALOG_CHANGED_OPERATOR ||
         change->what == CATALOG_CHANGED_CXX;
}

/* what:name@release, and with "/platform" behind it where platforms differ. */
static void check_id(struct check *check) {
  const struct catalog_change *change = check->change;
  char want[300];
  int length =
      snprintf(want, sizeof want, "%s:%s@%s", catalog_changed_word(change->what), change->name, change->release);
  if ((size_t)length >= sizeof want || strncmp(change->id, want, (size_t)length) != 0 ||
      (change->id[length] && change->id[length] != '/'))
    fault(check, "id", "id: '%s' does not begin with %s", change->id, want);
}

static void check_releases(struct check *check) {
  const struct catalog_change *change = check->change;
  const struct catalog_library *library = &check->catalog->library;
  int first = -1, last = -1;
  for (unsigned i = 0; i < library->releases_count; i++) {
    first = strcmp(library->releases[i], change->release) == 0 ? (int)i : first;
    last = change->last_with && strcmp(library->releases[i], change->last_with) == 0 ? (int)i : last;
  }
  if (!change->release[0])
    fault(check, NULL, "release is missing");
  else if (first < 0)
    fault(check, "release", "release: no release '%s' in library.releases", change->release);
  if (change->last_with && last < 0)
    fault(check, "last_with", "last_with: no release '%s' in library.releases", change->last_with);
  else if (first >= 0 && last >= 0 && first != last + 1)
    fault(check, "release", "release: %s is not the release after %s", change->release, change->last_with);
  for (unsigned i = 0; i < change->distributions_count; i++) {
    bool known = false;
    for (unsigned k = 0; k < library->distributions_count && !known; k++)
      known = strcmp(library->distributions[k], change->distributions[i]) == 0;
    if (!known)
      fault(check, "distributions", "distributions: no '%s' in library.distributions", change->distributions[i]);
  }
  if (change->change && (change->change[0] != '#' || !change->change[1] ||
                         strspn(change->change + 1, "0123456789") != strlen(change->change + 1)))
    fault(check, "change", "change: '%s' is not of the form '#123'", change->change);
}

static void check_texts(struct check *check) {
  const struct catalog_change *change = check->change;
  if (!change->reason[0])
    fault(check, NULL, "reason is missing: what breaks, or why nothing does");
  if (!change->remedy[0] && change->breaks != CATALOG_BREAKS_NOTHING && change->breaks != CATALOG_BREAKS_DEFAULT)
    fault(check, NULL, "remedy is missing: what a caller has to do");
  if (!change->provenance_count)
    fault(check, NULL, "provenance is missing");
  if (change->what == CATALOG_CHANGED_PYTHON && !change->modules_count)
    fault(check, NULL, "modules is missing: where the function can be imported from");
  if (!change->before[0])
    fault(check, NULL, "before is missing");
  if ((change->when_given || change->when_left_out) && change->breaks != CATALOG_BREAKS_SILENT)
    fault(check, NULL, "when_given and when_left_out belong to a change of kind silent");
}

/* The mangled name of a global function whose types are known; of others only that it is one of the function. */
static void check_mangled(struct check *check, const char *key, const char *want,
                          const struct catalog_signature *signature) {
  char name[200], text[4000], mangled[1000], error[300];
  snprintf(name, sizeof name, "%.*s", (int)signature->name.length, signature->name.text);
  unsigned parameters;
  size_t used =
      (size_t)snprintf(text, sizeof text, "%.*s %s(", (int)signature->result.length, signature->result.text, name);
  for (unsigned i = 0; i < signature->count && used < sizeof text; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", i ? ", " : "",
                             (int)signature->parameters[i].type.length, signature->parameters[i].type.text);
  if (used < sizeof text)
    used += (size_t)snprintf(text + used, sizeof text - used, ")");
  const struct catalog_cxx cxx = {.name = name, .scope = "", .declaration = text, .mangled = want};
  if (!*want)
    fault(check, NULL, "%s is missing", key);
  else if (strncmp(want, "_Z", 2) != 0 || !strstr(want, name))
    fault(check, key, "%s: '%s' is no mangled name of %s", key, want, name);
  else if (used < sizeof text && strncmp(want, "_ZN", 3) != 0 &&
           catalog_mangle(&cxx, mangled, sizeof mangled, &parameters, error, sizeof error) &&
           strcmp(mangled, want) != 0)
    fault(check, key, "%s: the declaration makes it %s", key, mangled);
}

static void check_signatures(struct check *check) {
  static const char *const words[] = {"calls", "link", "result", "silent", "default", "import", "nothing"};
  const struct catalog_change *change = check->change;
  struct catalog_signature before, after;
  bool readable = catalog_signature_read(change->what, change->before, &before);
  if (!readable)
    fault(check, "before", "before: cannot be read: %s", change->before);
  if (!catalog_signature_read(change->what, change->after, &after)) {
    fault(check, "after", "after: cannot be read: %s", change->after);
    return;
  }
  if (!readable || change->breaks == CATALOG_BREAKS_SILENT)
    return;
  if (change->what != CATALOG_CHANGED_PYTHON &&
      (strlen(change->name) != before.name.length || memcmp(change->name, before.name.text, before.name.length) != 0))
    fault(check, "before", "before: it is not the form of %s", change->name);
  if (change->what == CATALOG_CHANGED_CXX) {
    check_mangled(check, "mangled_before", change->mangled_before, &before);
    check_mangled(check, "mangled_after", change->mangled_after, &after);
  }
  bool moved = strcmp(change->mangled_before, change->mangled_after) != 0;
  if (strcmp(change->before, change->after) == 0 && !moved)
    fault(check, "after", "after: it is the same as before");
  enum catalog_breaks breaks = catalog_signature_breaks(change->what, &before, &after);
  if (breaks != CATALOG_BREAKS_CALLS && moved)
    breaks = CATALOG_BREAKS_LINK;
  if (breaks != change->breaks)
    fault(check, "breaks", "breaks: %s, but the two signatures say %s", words[change->breaks], words[breaks]);
}

void catalog_lint_change(const struct catalog *catalog, unsigned index, catalog_change_fault *report, void *user) {
  struct check check = {catalog, &catalog->changes[index], report, user};
  check_id(&check);
  check_releases(&check);
  check_texts(&check);
  if (is_signature(check.change))
    check_signatures(&check);
  else if (strcmp(check.change->before, check.change->after) == 0)
    fault(&check, "after", "after: it is the same as before");
}
