/* Which files can contain a catalog name at all: one Hyperscan pattern set over the bytes of every file. */
#ifndef SGL_SCANNER_PREFILTER_H
#define SGL_SCANNER_PREFILTER_H

#include "scanner/scanner.h"

#include <hs.h>

/* What of the catalog a file has, source_file.seen. */
enum {
  SEEN_OWNER = 1,  /* the package or the operator namespace, also inside of a longer word */
  SEEN_NAME = 2,   /* a name as a whole word ([A-Za-z0-9_]) */
  SEEN_FILE = 4,   /* the base name of a deleted file */
  SEEN_IGNORE = 8, /* a comment that accepts a use */
  SEEN_ROUTE = 16, /* a package that some releases of sglang have dropped modules of; matters with --to sglang */
  SEEN_ALL = 31,
};

/* The pattern set of a catalog for the search. The compiler takes about 80 ms, so that of the built-in catalog is
 * compiled when sgl-migrate is built (prefilter_gen.c). */
struct prefilter_patterns {
  const char **text;
  uint8_t *seen; /* what a match means */
  unsigned *ids;
  size_t *length;
  size_t count, capacity;
};
void prefilter_patterns(struct prefilter_patterns *patterns, const struct catalog *catalog);
void prefilter_patterns_free(struct prefilter_patterns *patterns);
/* NULL with the reason in *message, which is freed with hs_free_compile_error. */
hs_database_t *prefilter_compile(const struct prefilter_patterns *patterns, const hs_platform_info_t *platform,
                                 hs_compile_error_t **error);

/* The built-in catalog's set, serialized, for any processor (generated). */
extern const unsigned char prefilter_builtin[];
extern const size_t prefilter_builtin_size;

/* One for a run; `workers` is how many threads call prefilter_look at once, each with its own `worker` number below it.
 */
struct prefilter *prefilter_new(const struct catalog *catalog, unsigned workers);
/* SEEN_ bits. */
unsigned prefilter_look(struct prefilter *prefilter, unsigned worker, const uint8_t *bytes, size_t size);
void prefilter_free(struct prefilter *prefilter);

#endif
