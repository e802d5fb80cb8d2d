/* The settings of the trees that a command looks at, and what of them counts: the command line wins. */
#include "scanner/command.h"
#include "scanner/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes a value that the command line does not give. Of several trees, all have to say the same. */
static const char *take(const struct settings *settings, const char *key, const char *value, const char *given,
                        const char **taken, const char **taken_from) {
  if (!value || given)
    return value ? "not used: the command line has one" : NULL;
  if (*taken && strcmp(*taken, value) != 0)
    usage_error("%s: %s %s, but %s says %s; give --%s, or one PATH", settings->path, key, value, *taken_from, *taken,
                key);
  *taken = value;
  *taken_from = settings->path;
  return "";
}

/* ", kernel 0.4.6 (not used: ...)" */
static void add(char **said, const char *key, const char *value, const char *why_not) {
  if (!value)
    return;
  char *longer = scan_format("%s%s %s %s%s%s%s", *said, **said ? "," : "", key, value, *why_not ? " (" : "", why_not,
                             *why_not ? ")" : "");
  free(*said);
  *said = longer;
}

static void add_count(char **said, const char *key, unsigned count) {
  char *number = count ? scan_format("%u", count) : NULL;
  add(said, key, number, "");
  free(number);
}

struct settings *command_open_settings(char *const *paths, size_t count, struct choice *choice, const char **baseline,
                                       const char *no_baseline) {
  struct settings *list = scan_alloc(NULL, count * sizeof *list);
  const struct choice given = *choice;
  const char *kernel_from = NULL, *to_from = NULL;
  char message[600];
  for (size_t i = 0; i < count; i++) {
    struct settings *settings = &list[i];
    if (!settings_open(settings, paths[i], message, sizeof message))
      usage_error("%s", message);
    if (!settings->path)
      continue;
    char *said = scan_format("%s", "");
    const char *why = take(settings, "kernel", settings->kernel, given.kernel, &choice->kernel, &kernel_from);
    add(&said, "kernel", settings->kernel, why);
    why = take(settings, "to", settings->to, given.to, &choice->to, &to_from);
    add(&said, "to", settings->to, why);
    why = no_baseline ? no_baseline : count > 1 ? "not used: several paths" : "";
    if (settings->baseline && !*why)
      *baseline = settings->baseline;
    add(&said, "baseline", settings->baseline, why);
    add_count(&said, "exclude", settings->exclude_count);
    add_count(&said, "include", settings->include_count);
    fprintf(stderr, "sgl-migrate: %s:%s\n", settings->path, *said ? said : " no settings");
    free(said);
  }
  return list;
}

void command_close_settings(struct settings *settings, size_t count) {
  for (size_t i = 0; i < count; i++)
    settings_close(&settings[i]);
  free(settings);
}
