#include "scanner/prefilter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct prefilter {
  struct prefilter_patterns patterns;
  hs_database_t *database;
  hs_scratch_t **scratch; /* one a worker */
  unsigned workers;
};

static void fail(const char *what) {
  fprintf(stderr, "sgl-migrate: the name search cannot start: %s\n", what);
  _exit(EXIT_FAULT);
}

struct prefilter *prefilter_new(const struct catalog *catalog, unsigned workers) {
  struct prefilter *prefilter = scan_alloc(NULL, sizeof *prefilter);
  *prefilter = (struct prefilter){.workers = workers};
  prefilter_patterns(&prefilter->patterns, catalog);
  hs_compile_error_t *error = NULL;
  /* A Hyperscan of another version does not take it. */
  if (catalog != &catalog_builtin || hs_deserialize_database((const char *)prefilter_builtin, prefilter_builtin_size,
                                                             &prefilter->database) != HS_SUCCESS)
    prefilter->database = prefilter_compile(&prefilter->patterns, NULL, &error);
  if (!prefilter->database)
    fail(error ? error->message : "unknown error");
  prefilter->scratch = scan_alloc(NULL, workers * sizeof(hs_scratch_t *));
  for (unsigned i = 0; i < workers; i++) {
    prefilter->scratch[i] = NULL;
    if (hs_alloc_scratch(prefilter->database, &prefilter->scratch[i]) != HS_SUCCESS)
      fail("out of memory");
  }
  return prefilter;
}

struct look {
  const struct prefilter_patterns *patterns;
  const uint8_t *bytes;
  size_t size;
  unsigned seen;
};

static bool word_byte(uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Does a word of the text start at `at`? Also right behind an escape: "\\nNAME" in the text of a string. */
static bool word_starts(const uint8_t *bytes, size_t at) {
  size_t start = at;
  while (start > 0 && at - start < 10 && word_byte(bytes[start - 1]))
    start--;
  return start == at || (start > 0 && bytes[start - 1] == '\\');
}

static int on_match(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *context) {
  (void)from;
  (void)flags;
  struct look *look = context;
  unsigned seen = look->patterns->seen[id];
  size_t start = (size_t)to - look->patterns->length[id];
  if (!word_starts(look->bytes, start) || (to < look->size && word_byte(look->bytes[to])))
    seen &= ~(unsigned)SEEN_NAME;
  look->seen |= seen;
  return look->seen == SEEN_ALL; /* no more to learn */
}

unsigned prefilter_look(struct prefilter *prefilter, unsigned worker, const uint8_t *bytes, size_t size) {
  struct look look = {&prefilter->patterns, bytes, size, 0};
  if (size == 0)
    return 0;
  hs_error_t status =
      hs_scan(prefilter->database, (const char *)bytes, (unsigned)size, 0, prefilter->scratch[worker], on_match, &look);
  /* A file that could not be searched is analysed in full rather than left out. */
  return status == HS_SUCCESS || status == HS_SCAN_TERMINATED ? look.seen : SEEN_ALL;
}

void prefilter_free(struct prefilter *prefilter) {
  for (unsigned i = 0; i < prefilter->workers; i++)
    hs_free_scratch(prefilter->scratch[i]);
  free(prefilter->scratch);
  hs_free_database(prefilter->database);
  prefilter_patterns_free(&prefilter->patterns);
  free(prefilter);
}
