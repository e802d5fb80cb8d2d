/* The loader on catalogs that are right: what is left out, the order of rows, and ownership. */
#include "tests/unit.h"

#include "catalog/catalog_private.h"

static struct catalog *load(const char *name) {
  char path[300], message[300] = "";
  snprintf(path, sizeof path, "%.*s/%s", (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__, name);
  struct catalog *catalog = catalog_load(path, message, sizeof message);
  UNIT_STRINGS(message, "");
  CU_ASSERT_PTR_NOT_NULL_FATAL(catalog);
  return catalog;
}

static void what_is_left_out(void) {
  struct catalog *catalog = load("data/small.yaml");
  UNIT_STRINGS(catalog->library.package, "acme");
  UNIT_STRINGS(catalog->library.op_namespace, "");
  UNIT_STRINGS(catalog->library.cxx_header, "");
  CU_ASSERT_PTR_NULL(catalog->library.distributions);
  CU_ASSERT_EQUAL(catalog->library.distributions_count, 0);
  CU_ASSERT_EQUAL_FATAL(catalog->library.releases_count, 2);
  UNIT_STRINGS(catalog->library.releases[1], "1.1");
  CU_ASSERT_EQUAL_FATAL(catalog->symbols_count, 1);
  const struct catalog_symbol *zeta = &catalog->symbols[0];
  UNIT_STRINGS(zeta->op_name, "");
  UNIT_STRINGS(zeta->op_schema, "");
  UNIT_STRINGS(zeta->cxx.name, "");
  UNIT_STRINGS(zeta->cxx.scope, "");
  UNIT_STRINGS(zeta->cxx.declaration, "");
  UNIT_STRINGS(zeta->cxx.mangled, "");
  CU_ASSERT_EQUAL(zeta->cxx.parameters, 0);
  CU_ASSERT_PTR_NULL(zeta->cxx.templates);
  CU_ASSERT_PTR_NULL(zeta->stage_end);
  CU_ASSERT_PTR_NULL(zeta->sources);
  CU_ASSERT_PTR_NULL(zeta->traps);
  CU_ASSERT_EQUAL_FATAL(zeta->removals_count, 1);
  CU_ASSERT_PTR_NULL(zeta->removals[0].commit);
  CU_ASSERT_EQUAL_FATAL(zeta->routes_count, 1);
  const struct catalog_route *route = &zeta->routes[0];
  CU_ASSERT_EQUAL(route->kind, CATALOG_ROUTE_LIBRARY);
  CU_ASSERT_PTR_NULL(route->from);
  CU_ASSERT_PTR_NULL(route->until);
  CU_ASSERT_FALSE(route->python || route->cxx);
  UNIT_STRINGS(route->note, "");
  CU_ASSERT_EQUAL_FATAL(route->arguments_count, 3);
  UNIT_STRINGS(route->arguments[1].to, "");
  UNIT_STRINGS(route->arguments[2].to, "q");
  catalog_free(catalog);
}

static void count_fault(void *user, const char *line) {
  fprintf(stderr, "  %s\n", line);
  ++*(unsigned *)user;
}

static void right_ones_are_right(void) {
  static const char *const names[] = {"data/small.yaml", "data/forms.yaml", "../../catalog/removals.yaml"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    struct catalog *catalog = load(names[i]);
    char path[300];
    unsigned faults = 0;
    snprintf(path, sizeof path, "%.*s/%s", (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__, names[i]);
    CU_ASSERT_EQUAL(catalog_lint(catalog, path, count_fault, &faults), 0);
    CU_ASSERT_EQUAL(faults, 0);
    catalog_free(catalog);
  }
}

/* The loader sorts, so that catalog_find works on every catalog; that the file is sorted is the linter's business. */
static void rows_are_sorted(void) {
  struct catalog *catalog = load("data/lint/rows-not-sorted.yaml");
  CU_ASSERT_EQUAL_FATAL(catalog->symbols_count, 2);
  UNIT_STRINGS(catalog->symbols[0].id, "add");
  UNIT_STRINGS(catalog->symbols[1].id, "mul");
  CU_ASSERT_PTR_EQUAL(catalog_find(catalog, "mul"), &catalog->symbols[1]);
  catalog_free(catalog);
}

static void free_nothing(void) {
  catalog_free(NULL);
  CU_PASS("catalog_free(NULL) returned");
}

static const struct unit_test tests[] = {
    {"what_is_left_out", what_is_left_out},
    {"right_ones_are_right", right_ones_are_right},
    {"rows_are_sorted", rows_are_sorted},
    {"free_nothing", free_nothing},
};
UNIT_MAIN("catalog.load", tests)
