/* Which files can contain a catalog name at all: one Hyperscan pattern set over the bytes of every file. */
#include "scanner/scanner.h"

#include <hs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct prefilter {
  hs_database_t *database;
  hs_scratch_t **scratch; /* one a worker */
  unsigned workers;
};

struct patterns {
  const char **text;
  size_t *length;
  size_t count, capacity;
};

static void add_pattern(struct patterns *patterns, const char *text) {
  if (!text || !*text)
    return;
  if (patterns->count == patterns->capacity) {
    patterns->capacity = patterns->capacity ? 2 * patterns->capacity : 256;
    patterns->text = scan_alloc(patterns->text, patterns->capacity * sizeof *patterns->text);
    patterns->length = scan_alloc(patterns->length, patterns->capacity * sizeof *patterns->length);
  }
  patterns->text[patterns->count] = text;
  patterns->length[patterns->count++] = strlen(text);
}

/* Paths of deleted files count by their last part, which may stand alone in a joined path. */
static void add_file_name(struct patterns *patterns, const char *path) {
  const char *slash = strrchr(path, '/');
  add_pattern(patterns, slash ? slash + 1 : path);
}

static void fail(const char *what) {
  fprintf(stderr, "sgl-migrate: the name search cannot start: %s\n", what);
  _exit(EXIT_FAULT);
}

struct prefilter *prefilter_new(const struct scan *scan, unsigned workers) {
  const struct catalog *catalog = scan->catalog;
  struct patterns patterns = {0};
  add_pattern(&patterns, "sgl-migrate:"); /* an ignore comment may be all that is left */
  add_pattern(&patterns, catalog->library.package);
  add_pattern(&patterns, catalog->library.op_namespace);
  for (unsigned i = 0; i < catalog->symbols_count; i++) {
    const struct catalog_symbol *symbol = &catalog->symbols[i];
    add_pattern(&patterns, symbol->id);
    for (unsigned k = 0; k < symbol->python_count; k++)
      add_pattern(&patterns, symbol->python[k].name);
    add_pattern(&patterns, symbol->op_name);
    add_pattern(&patterns, symbol->cxx.name);
    add_pattern(&patterns, symbol->cxx.mangled);
    for (unsigned k = 0; k < symbol->cxx.templates_count; k++)
      add_pattern(&patterns, symbol->cxx.templates[k]);
    for (unsigned k = 0; k < symbol->sources_count; k++)
      add_file_name(&patterns, symbol->sources[k]);
    for (unsigned k = 0; k < symbol->tests_count; k++)
      add_file_name(&patterns, symbol->tests[k]);
    for (unsigned k = 0; k < symbol->benchmarks_count; k++)
      add_file_name(&patterns, symbol->benchmarks[k]);
  }
  unsigned *flags = scan_alloc(NULL, patterns.count * sizeof *flags);
  for (size_t i = 0; i < patterns.count; i++)
    flags[i] = HS_FLAG_SINGLEMATCH;
  struct prefilter *prefilter = scan_alloc(NULL, sizeof *prefilter);
  *prefilter = (struct prefilter){.workers = workers};
  hs_compile_error_t *error = NULL;
  if (hs_compile_lit_multi(patterns.text, flags, NULL, patterns.length, (unsigned)patterns.count, HS_MODE_BLOCK, NULL,
                           &prefilter->database, &error) != HS_SUCCESS)
    fail(error ? error->message : "unknown error");
  prefilter->scratch = scan_alloc(NULL, workers * sizeof(hs_scratch_t *));
  for (unsigned i = 0; i < workers; i++) {
    prefilter->scratch[i] = NULL;
    if (hs_alloc_scratch(prefilter->database, &prefilter->scratch[i]) != HS_SUCCESS)
      fail("out of memory");
  }
  free(flags);
  free(patterns.text);
  free(patterns.length);
  return prefilter;
}

static int on_match(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *context) {
  (void)id;
  (void)from;
  (void)to;
  (void)flags;
  *(bool *)context = true;
  return 1; /* one match is enough */
}

bool prefilter_hit(struct prefilter *prefilter, unsigned worker, const uint8_t *bytes, size_t size) {
  bool hit = false;
  if (size == 0)
    return false;
  hs_error_t status =
      hs_scan(prefilter->database, (const char *)bytes, (unsigned)size, 0, prefilter->scratch[worker], on_match, &hit);
  /* A file that could not be searched is analysed in full rather than left out. */
  return hit || (status != HS_SUCCESS && status != HS_SCAN_TERMINATED);
}

void prefilter_free(struct prefilter *prefilter) {
  for (unsigned i = 0; i < prefilter->workers; i++)
    hs_free_scratch(prefilter->scratch[i]);
  free(prefilter->scratch);
  hs_free_database(prefilter->database);
  free(prefilter);
}
