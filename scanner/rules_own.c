/* sglang's own sources: what they import of sglang is what the tree has, not what some release has. */
#include "scanner/scanner.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PACKAGE "sglang"

static bool is_there(const char *folder, size_t length, const char *path, bool is_folder) {
  char *full = scan_format("%.*s/%s", (int)length, folder, path);
  struct stat status;
  bool found = stat(full, &status) == 0 && (is_folder ? S_ISDIR(status.st_mode) : S_ISREG(status.st_mode));
  free(full);
  return found;
}

/* A stand-in for tests has no server in it. */
static bool has_package(const char *folder, size_t length) {
  return is_there(folder, length, PACKAGE "/__init__.py", false) && is_there(folder, length, PACKAGE "/srt", true);
}

/* The root is the package, or inside of it. */
static char *above(const char *root) {
  for (size_t end = strlen(root); end > 0;) {
    size_t start = end;
    while (start > 0 && root[start - 1] != '/')
      start--;
    if (end - start == sizeof PACKAGE - 1 && memcmp(root + start, PACKAGE, end - start) == 0 &&
        has_package(root, start ? start - 1 : 0))
      return scan_format("%.*s", (int)(start ? start - 1 : 0), root);
    end = start ? start - 1 : 0;
  }
  return NULL;
}

char *rules_own_folder(const struct scan *scan) {
  static const char init[] = PACKAGE "/__init__.py";
  char *found = scan->real_root ? above(scan->real_root) : NULL;
  for (size_t i = 0; i < scan->files_count && !found; i++) {
    const char *path = scan->files[i].path, *slash = strchr(path, '/');
    bool here = strcmp(path, init) == 0, below = slash && strcmp(slash + 1, init) == 0; /* python/sglang/__init__.py */
    if (!(here || below) || !scan->files[i].full_path)
      continue;
    size_t length = strlen(scan->files[i].full_path) - sizeof init;
    if (has_package(scan->files[i].full_path, length))
      found = scan_format("%.*s", (int)length, scan->files[i].full_path);
  }
  return found;
}

bool rules_own_module(const char *folder, const char *module) {
  char *path = scan_format("%s", module);
  for (char *at = path; *at; at++)
    *at = *at == '.' ? '/' : *at;
  char *file = scan_format("%s.py", path), *package = scan_format("%s/__init__.py", path);
  bool found = is_there(folder, strlen(folder), file, false) || is_there(folder, strlen(folder), package, false);
  free(package);
  free(file);
  free(path);
  return found;
}
