/* What the name search looks for. */
#include "scanner/prefilter.h"

#include <stdlib.h>
#include <string.h>

static void add_pattern(struct prefilter_patterns *patterns, const char *text, unsigned seen) {
  if (!text || !*text)
    return;
  for (size_t i = 0; i < patterns->count; i++)
    if (strcmp(patterns->text[i], text) == 0) {
      patterns->seen[i] |= (uint8_t)seen;
      return;
    }
  if (patterns->count == patterns->capacity) {
    patterns->capacity = patterns->capacity ? 2 * patterns->capacity : 512;
    patterns->text = scan_alloc(patterns->text, patterns->capacity * sizeof *patterns->text);
    patterns->seen = scan_alloc(patterns->seen, patterns->capacity * sizeof *patterns->seen);
    patterns->ids = scan_alloc(patterns->ids, patterns->capacity * sizeof *patterns->ids);
    patterns->length = scan_alloc(patterns->length, patterns->capacity * sizeof *patterns->length);
  }
  patterns->text[patterns->count] = text;
  patterns->seen[patterns->count] = (uint8_t)seen;
  patterns->ids[patterns->count] = (unsigned)patterns->count;
  patterns->length[patterns->count++] = strlen(text);
}

/* Paths of deleted files count by their last part, which may stand alone in a joined path. */
static void add_file_name(struct prefilter_patterns *patterns, const char *path) {
  const char *slash = strrchr(path, '/');
  add_pattern(patterns, slash ? slash + 1 : path, SEEN_FILE);
}

/* "sglang.jit_kernel" of "sglang.jit_kernel.rope": what later releases of sglang have dropped modules of. */
static void add_package_of(struct prefilter_patterns *patterns, const char *module) {
  const char *dot = strrchr(module, '.');
  char *package = scan_format("%.*s", dot ? (int)(dot - module) : 0, module);
  size_t before = patterns->count;
  add_pattern(patterns, package, SEEN_ROUTE);
  if (patterns->count == before)
    free(package); /* known */
}

void prefilter_patterns(struct prefilter_patterns *patterns, const struct catalog *catalog) {
  *patterns = (struct prefilter_patterns){0};
  add_pattern(patterns, "sgl-migrate:", SEEN_IGNORE); /* an ignore comment may be all that is left */
  add_pattern(patterns, catalog->library.package, SEEN_OWNER);
  add_pattern(patterns, catalog->library.op_namespace, SEEN_OWNER);
  for (unsigned i = 0; i < catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &catalog->symbols[i];
    size_t changed = strncmp(symbol->id, CHANGED_PREFIX, strlen(CHANGED_PREFIX)) == 0 ? strlen(CHANGED_PREFIX) : 0;
    add_pattern(patterns, symbol->id + changed, SEEN_NAME);
    for (unsigned k = 0; k < symbol->python_count; k++)
      add_pattern(patterns, symbol->python[k].name, SEEN_NAME);
    add_pattern(patterns, symbol->op_name, SEEN_NAME);
    add_pattern(patterns, symbol->cxx.name, SEEN_NAME);
    add_pattern(patterns, symbol->cxx.mangled, SEEN_NAME);
    for (unsigned k = 0; k < symbol->cxx.templates_count; k++)
      add_pattern(patterns, symbol->cxx.templates[k], SEEN_NAME);
    for (unsigned k = 0; k < symbol->routes_count; k++)
      if (symbol->routes[k].until)
        add_package_of(patterns, symbol->routes[k].module);
    for (unsigned k = 0; k < symbol->sources_count; k++)
      add_file_name(patterns, symbol->sources[k]);
    for (unsigned k = 0; k < symbol->tests_count; k++)
      add_file_name(patterns, symbol->tests[k]);
    for (unsigned k = 0; k < symbol->benchmarks_count; k++)
      add_file_name(patterns, symbol->benchmarks[k]);
  }
}

void prefilter_patterns_free(struct prefilter_patterns *patterns) {
  for (size_t i = 0; i < patterns->count; i++)
    if (patterns->seen[i] == SEEN_ROUTE)
      free((void *)(uintptr_t)patterns->text[i]);
  free(patterns->text);
  free(patterns->seen);
  free(patterns->ids);
  free(patterns->length);
}

hs_database_t *prefilter_compile(const struct prefilter_patterns *patterns, const hs_platform_info_t *platform,
                                 hs_compile_error_t **error) {
  hs_database_t *database = NULL;
  unsigned *flags = scan_alloc(NULL, patterns->count * sizeof *flags);
  memset(flags, 0, patterns->count * sizeof *flags);
  hs_error_t status = hs_compile_lit_multi(patterns->text, flags, patterns->ids, patterns->length,
                                           (unsigned)patterns->count, HS_MODE_BLOCK, platform, &database, error);
  free(flags);
  return status == HS_SUCCESS ? database : NULL;
}
