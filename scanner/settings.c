/* .sgl-migrate.yaml: the defaults of a tree. The patterns of `exclude` are git's pathspecs, matched by libgit2. */
#include "scanner/settings.h"
#include "catalog/yaml.h"
#include "scanner/file.h"
#include "scanner/scanner.h"

#include <errno.h>
#include <git2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LARGEST ((size_t)1 << 20)

struct settings_values {
  const char *kernel, *to, *baseline;
  const char **exclude;
  unsigned exclude_count;
  const char **include;
  unsigned include_count;
};

#define TEXT(key) CYAML_FIELD_STRING_PTR(#key, CYAML_FLAG_OPTIONAL, struct settings_values, key, 0, CYAML_UNLIMITED)
#define LIST(key)                                                                                                      \
  CYAML_FIELD_SEQUENCE(#key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct settings_values, key, &string_entry, 0,  \
                       CYAML_UNLIMITED)

static const cyaml_schema_value_t string_entry = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 0, CYAML_UNLIMITED)};
static const cyaml_schema_field_t fields[] = {
    TEXT(kernel), TEXT(to), TEXT(baseline), LIST(exclude), LIST(include), CYAML_FIELD_END,
};
static const cyaml_schema_value_t schema = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct settings_values, fields)};

/* The line of a key, or of the entry of its list that has this text. */
static unsigned line_of(const char *text, const char *key, const char *entry) {
  unsigned line = 1, found = 0;
  size_t length = strlen(key);
  for (const char *at = text; *at; at += *at == '\n') {
    size_t end = strcspn(at, "\n");
    if (!found && strncmp(at, key, length) == 0 && at[length] == ':')
      found = line;
    if (found && (!entry || memmem(at, end, entry, strlen(entry))))
      return line;
    at += end;
    line++;
  }
  return found;
}

/* "a/b/" and "./a/b" are "a/b"; in place. */
static void tidy(const char **entry) {
  char *path = (char *)(uintptr_t)*entry;
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/')
    path[--length] = '\0';
  if (strncmp(path, "./", 2) == 0)
    memmove(path, path + 2, length - 1);
}

static char *join(const char *root, const char *path) {
  size_t length = strlen(root);
  if (strcmp(root, ".") == 0)
    return scan_format("%s", path);
  return scan_format("%s%s%s", root, length && root[length - 1] == '/' ? "" : "/", path);
}

/* What is wrong with the values, or NULL; *key and *entry are where. */
static char *check(const struct settings_values *values, const char *root, const char **key, const char **entry) {
  *entry = NULL;
  *key = "kernel";
  if (values->kernel && !catalog_version_valid(values->kernel))
    return scan_format("kernel '%s': a release number is needed", values->kernel);
  *key = "to";
  if (values->to && strcmp(values->to, "jit") != 0 &&
      (strncmp(values->to, "sglang@", 7) != 0 || !catalog_version_valid(values->to + 7)))
    return scan_format("to '%s': jit or sglang@VERSION is needed", values->to);
  *key = "baseline";
  if (values->baseline && !file_below_root(values->baseline))
    return scan_format("baseline '%s': a path below this folder is needed", values->baseline);
  *key = "exclude";
  for (unsigned i = 0; i < values->exclude_count; i++) {
    *entry = values->exclude[i];
    if (!file_below_root(values->exclude[i]))
      return scan_format("exclude '%s': a pattern below this folder is needed", values->exclude[i]);
  }
  *key = "include";
  for (unsigned i = 0; i < values->include_count; i++) {
    *entry = values->include[i];
    if (!file_below_root(values->include[i]))
      return scan_format("include '%s': a path below this folder is needed", values->include[i]);
    char *path = join(root, values->include[i]);
    struct stat status;
    int missing = lstat(path, &status) != 0 ? errno : 0;
    free(path);
    if (missing || (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode)))
      return scan_format("include '%s': %s", values->include[i],
                         missing ? strerror(missing) : "is neither a folder nor a regular file");
  }
  return NULL;
}

static bool take(struct settings *settings, const char *text, const char *root, char *message, size_t message_size) {
  struct settings_values *values = settings->values;
  for (unsigned i = 0; i < values->exclude_count; i++)
    tidy(&values->exclude[i]);
  for (unsigned i = 0; i < values->include_count; i++)
    tidy(&values->include[i]);
  const char *key, *entry;
  char *fault = check(values, root, &key, &entry);
  if (fault) {
    snprintf(message, message_size, "%s:%u: %s", settings->path, line_of(text, key, entry), fault);
    free(fault);
    return false;
  }
  settings->kernel = values->kernel;
  settings->to = values->to;
  settings->baseline = values->baseline ? join(root, values->baseline) : NULL;
  settings->include = values->include;
  settings->include_count = values->include_count;
  settings->exclude_count = values->exclude_count;
  if (values->exclude_count) {
    git_libgit2_init();
    git_strarray patterns = {(char **)(uintptr_t)values->exclude, values->exclude_count};
    git_pathspec *exclude;
    if (git_pathspec_new(&exclude, &patterns) != 0)
      scan_out_of_memory();
    settings->exclude = exclude;
  }
  return true;
}

bool settings_open(struct settings *settings, const char *root, char *message, size_t message_size) {
  *settings = (struct settings){0};
  char *path = join(root, SETTINGS_NAME), why[200];
  struct stat status;
  if (stat(root, &status) != 0 || !S_ISDIR(status.st_mode) || lstat(path, &status) != 0) {
    free(path);
    return true;
  }
  settings->path = path;
  size_t size;
  char *text = file_read(path, LARGEST, &size, why, sizeof why);
  void *values = NULL;
  bool good = text != NULL;
  if (!good)
    snprintf(message, message_size, "%s: %s", path, why);
  else
    good = yaml_load(path, text, size, &schema, &values, message, message_size);
  settings->values = good ? values : NULL;
  if (settings->values)
    good = take(settings, text, root, message, message_size);
  free(text);
  return good;
}

void settings_close(struct settings *settings) {
  if (settings->exclude) {
    git_pathspec_free(settings->exclude);
    git_libgit2_shutdown();
  }
  if (settings->values)
    yaml_free(&schema, settings->values);
  free(settings->baseline);
  free(settings->path);
}

bool settings_exclude(const struct settings *settings, const char *path) {
  return settings->exclude && git_pathspec_matches_path(settings->exclude, GIT_PATHSPEC_DEFAULT, path) == 1;
}
