/* The command sgl-catalog: checks a catalog, and writes what is generated from it. */
#include "catalog/catalog_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATUS_OK = 0, STATUS_FAULTS = 1, STATUS_USAGE = 2 };

static const char help[] =
    "usage: sgl-catalog lint FILE...\n"
    "       sgl-catalog generate FILE DIR\n"
    "       sgl-catalog docs FILE DIR\n"
    "\n"
    "lint      prove each catalog; prints one summary line a file\n"
    "generate  lint FILE and write catalog_builtin.c, compat_catalog.py, compat_old.pyi, compat_table.c,\n"
    "          compat_table.h, compat_tombstones.h, compat_exports.map and cxx_prelude.c into the existing folder DIR; "
    "prelude.h.in is\n"
    "          taken from beside FILE; prints nothing\n"
    "docs      lint FILE and write a page for each name and for the changes of each release, README.md,\n"
    "          answers.md, releases.md and changes.md into the existing folder DIR; prints nothing\n"
    "\n"
    "catalog/schema.md describes the format of a catalog. Faults go to standard error as FILE:LINE: what.\n"
    "Exit status: 0 done, 1 a catalog is broken or a file cannot be read or written, 2 wrong command line.\n";

static void print_fault(void *user, const char *line) {
  (void)user;
  fprintf(stderr, "%s\n", line);
}

/* The catalog, loaded and proved; NULL after the faults were printed. */
static struct catalog *open_catalog(const char *path) {
  char message[600];
  struct catalog *catalog = catalog_load(path, message, sizeof message);
  if (!catalog) {
    fprintf(stderr, "%s\n", message);
    return NULL;
  }
  if (catalog_lint(catalog, path, print_fault, NULL)) {
    catalog_free(catalog);
    return NULL;
  }
  return catalog;
}

static int lint(char **files) {
  int status = STATUS_OK;
  for (; *files; files++) {
    struct catalog *catalog = open_catalog(*files);
    if (!catalog) {
      status = STATUS_FAULTS;
      continue;
    }
    unsigned removed = 0, planned = 0;
    for (unsigned i = 0; i < catalog->symbols_count; i++) {
      removed += catalog->symbols[i].status == CATALOG_REMOVED;
      planned += catalog->symbols[i].status == CATALOG_PLANNED;
    }
    printf("%s: %u row%s, %u removed, %u planned\n", *files, catalog->symbols_count,
           catalog->symbols_count == 1 ? "" : "s", removed, planned);
    catalog_free(catalog);
  }
  return status;
}

static int generate(const char *path, const char *directory) {
  struct catalog *catalog = open_catalog(path);
  if (!catalog)
    return STATUS_FAULTS;
  const char *slash = strrchr(path, '/');
  char *prelude_path = NULL, *prelude = NULL, message[600];
  int status = STATUS_FAULTS;
  size_t size;
  if (asprintf(&prelude_path, "%.*sprelude.h.in", slash ? (int)(slash - path) + 1 : 0, path) >= 0)
    prelude = catalog_read_file(prelude_path, &size);
  else
    prelude_path = NULL;
  if (!prelude)
    fprintf(stderr, "%s: cannot read: %s\n", prelude_path ? prelude_path : path, strerror(errno));
  else if (!catalog_generate(catalog, prelude, directory, message, sizeof message))
    fprintf(stderr, "%s\n", message);
  else
    status = STATUS_OK;
  free(prelude);
  free(prelude_path);
  catalog_free(catalog);
  return status;
}

static int docs(const char *path, const char *directory) {
  struct catalog *catalog = open_catalog(path);
  if (!catalog)
    return STATUS_FAULTS;
  char message[600];
  bool ok = catalog_docs(catalog, directory, message, sizeof message);
  if (!ok)
    fprintf(stderr, "%s\n", message);
  catalog_free(catalog);
  return ok ? STATUS_OK : STATUS_FAULTS;
}

static int usage(const char *what, const char *argument) {
  fprintf(stderr, "sgl-catalog: %s%s%s; try sgl-catalog --help\n", what, argument ? ": " : "",
          argument ? argument : "");
  return STATUS_USAGE;
}

int main(int argc, char **argv) {
  if (argc < 2)
    return usage("no command given", NULL);
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--help") == 0) {
      fputs(help, stdout);
      return STATUS_OK;
    }
    if (argv[i][0] == '-')
      return usage("unknown option", argv[i]);
  }
  if (strcmp(argv[1], "lint") == 0)
    return argc > 2 ? lint(argv + 2) : usage("lint needs a file", NULL);
  if (strcmp(argv[1], "generate") == 0)
    return argc == 4 ? generate(argv[2], argv[3]) : usage("generate needs a file and a folder", NULL);
  if (strcmp(argv[1], "docs") == 0)
    return argc == 4 ? docs(argv[2], argv[3]) : usage("docs needs a file and a folder", NULL);
  return usage("unknown command", argv[1]);
}
