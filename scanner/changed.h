/* scan --changed: calls of names that are still there and have another form (catalog, changes). changed.c has what both
 * languages need; python_changed.c and cxx_changed.c find the calls. */
#ifndef SGL_SCANNER_CHANGED_H
#define SGL_SCANNER_CHANGED_H

#include "scanner/scanner.h"

/* The catalog with a symbol "changed:NAME" more for each changed function, for findings and reports. It uses the texts
 * of `catalog`. */
struct catalog *changed_catalog(const struct catalog *catalog);
void changed_catalog_free(struct catalog *extended);

/* The changes of one function up to the chosen kernel, oldest first; CUDA's where it has some. */
struct changed {
  const struct catalog_change *list[32];
  unsigned count;
};
/* module: of a Python function; NULL for operators and C++. */
void changed_find(const struct scan *scan, enum catalog_changed what, const char *module, const char *name,
                  struct changed *changed);

/* What to say of a call; NULL call: its arguments cannot be told. Returns the message, owned by the caller, or NULL
 * when the call is right as it is. *level: ERROR when it cannot work, else WARNING. */
char *changed_judge(const struct changed *changed, const struct catalog_call *call, enum level *level);
/* "NAME has another form from RELEASE (#PR) on: FIRST; WHY; REMEDY"; without a WHY the change's own reason. Owned by
 * the caller. */
char *changed_message(const struct catalog_change *change, const char *first, const char *why);
/* Whose finding it is. */
const struct catalog_symbol *changed_symbol(const struct scan *scan, const struct catalog_change *change);

void cxx_changed(const struct scan *scan, const struct source_file *file, struct result *result);

#endif
