/* The beginnings of messages, with the names of the catalog's library in them. */
#include "scanner/explain.h"

#include <string.h>

size_t explain_pattern(const struct catalog_library *library, const char *pattern, const char *text) {
  const char *const names[] = {[1] = library->package, [2] = library->op_namespace, [3] = library->extension};
  const char *at = text;
  for (; *pattern; pattern++) {
    if ((unsigned char)*pattern >= sizeof names / sizeof *names) {
      if (*at++ != *pattern)
        return 0;
      continue;
    }
    const char *name = names[(unsigned char)*pattern];
    size_t length = strlen(name);
    if (!length || strncmp(at, name, length) != 0)
      return 0;
    at += length;
  }
  return (size_t)(at - text);
}
