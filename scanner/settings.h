/* .sgl-migrate.yaml: the defaults of a tree, in its root (settings.c). docs/sgl-migrate.1 describes them. */
#ifndef SGL_SCANNER_SETTINGS_H
#define SGL_SCANNER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#define SETTINGS_NAME ".sgl-migrate.yaml"

struct settings {
  /* All but `values` NULL or 0 when the file has no such key. */
  const char *kernel, *to;
  char *baseline;             /* as the user would type it */
  const char *const *include; /* files and folders below the root, looked at whatever they are */
  unsigned include_count;
  unsigned exclude_count;
  /* The settings' own. */
  char *path; /* of the file, as the user would type it */
  struct settings_values *values;
  void *exclude; /* git_pathspec */
};

/* Reads the settings of a root; all empty when it is no folder or has none. false after writing one line into message
 * when they are wrong. To be closed in any case, after the scan of the root. */
bool settings_open(struct settings *settings, const char *root, char *message, size_t message_size);
void settings_close(struct settings *settings);
/* Is a file or folder, relative to the root, excluded? */
bool settings_exclude(const struct settings *settings, const char *path);

#endif
