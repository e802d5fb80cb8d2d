/* Each file in data/load and data/lint is a catalog with one thing wrong, and says in its comments what has to be
 * reported: "# expect: LINE: what". Exactly those lines must come, in that order. */
#include "tests/unit.h"

#include "catalog/catalog_private.h"

#include <dirent.h>
#include <stdlib.h>

static const char expect[] = "# expect: ";

struct reported {
  char *text; /* "LINE: what\n" for each fault, without the file name */
  size_t size;
  FILE *out;
  size_t path_length;
};

static void report(void *user, const char *line) {
  struct reported *reported = user;
  const char *rest = line + reported->path_length;
  fprintf(reported->out, "%s\n", rest + (rest[0] == ':') + (rest[0] == ':' && rest[1] == ' '));
}

static char *expected_lines(const char *path) {
  size_t size;
  char *text = catalog_read_file(path, &size), *lines = NULL;
  CU_ASSERT_PTR_NOT_NULL_FATAL(text);
  FILE *out = open_memstream(&lines, &size);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
    if (strncmp(line, expect, sizeof expect - 1) == 0)
      fprintf(out, "%s\n", line + sizeof expect - 1);
  fclose(out);
  free(text);
  return lines;
}

static void check_file(const char *path, bool loads) {
  struct reported reported = {.path_length = strlen(path)};
  reported.out = open_memstream(&reported.text, &reported.size);
  char message[600] = "";
  struct catalog *catalog = catalog_load(path, message, sizeof message);
  CU_ASSERT_EQUAL(catalog != NULL, loads);
  unsigned faults = 0;
  if (catalog)
    faults = catalog_lint(catalog, path, report, &reported);
  else
    report(&reported, message);
  fclose(reported.out);
  char *want = expected_lines(path);
  if (!unit_equal_strings(reported.text, want)) {
    fprintf(stderr, "  in %s\n", path);
    CU_FAIL("other faults than expected");
  }
  if (catalog) {
    unsigned lines = 0;
    for (const char *at = reported.text; (at = strchr(at, '\n')) != NULL; at++)
      lines++;
    CU_ASSERT_EQUAL(faults, lines);
    catalog_free(catalog);
  }
  free(want);
  free(reported.text);
}

/* Every .yaml of the folder; how many there were. */
static unsigned check_folder(const char *name, bool loads) {
  char folder[300], path[800];
  snprintf(folder, sizeof folder, "%.*s/data/%s", (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__, name);
  DIR *dir = opendir(folder);
  CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
  unsigned count = 0;
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    if (!strstr(entry->d_name, ".yaml"))
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    check_file(path, loads);
    count++;
  }
  closedir(dir);
  return count;
}

static void refused_by_the_loader(void) {
  CU_ASSERT(check_folder("load", false) >= 21);
}

static void refused_by_the_linter(void) {
  CU_ASSERT(check_folder("lint", true) >= 110);
}

static void unreadable(void) {
  char message[300];
  CU_ASSERT_PTR_NULL(catalog_load("/no/such/catalog.yaml", message, sizeof message));
  UNIT_STRINGS(message, "/no/such/catalog.yaml: cannot read: No such file or directory");
  CU_ASSERT_PTR_NULL(catalog_load("/dev/null", message, sizeof message));
  UNIT_STRINGS(message, "/dev/null: the file holds no catalog");
  CU_ASSERT_PTR_NULL(catalog_load("/", message, sizeof message));
  UNIT_STRINGS(message, "/: cannot read: Is a directory");
  char small[8]; /* a message that does not fit is cut, never overrun */
  CU_ASSERT_PTR_NULL(catalog_load("/no/such/catalog.yaml", small, sizeof small));
  UNIT_STRINGS(small, "/no/suc");
  CU_ASSERT_PTR_NULL(catalog_load("/no/such/catalog.yaml", NULL, 0));
}

static const struct unit_test tests[] = {
    {"refused_by_the_loader", refused_by_the_loader},
    {"refused_by_the_linter", refused_by_the_linter},
    {"unreadable", unreadable},
};
UNIT_MAIN("catalog.broken", tests)
