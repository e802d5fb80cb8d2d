/* What a cache knows of C++ files besides their results (cache_cxx.c). */
#ifndef SGL_SCANNER_CACHE_CXX_H
#define SGL_SCANNER_CACHE_CXX_H

#include "scanner/cache_bytes.h"
#include "scanner/scanner.h"

struct known_cxx {
  const char *path;
  uint64_t hash;                      /* 0: it could not be read, or is empty */
  uint64_t ways;                      /* cxx_database_ways */
  bool kept;                          /* the cache has its result */
  const char *facts, *told, *defines; /* as in struct source_file; NULL: none */
  const uint8_t *asked;               /* keys; not aligned */
  uint32_t asked_count;
};

struct cache_cxx {
  struct known_cxx *files; /* sorted by path */
  uint32_t count;
};

/* false: the bytes are damaged. */
bool cache_cxx_parse(struct cache_cxx *cxx, struct cache_reader *reader);
/* Gives the files what is known of them, and marks those whose results hold as `holds`: as far as other files are not
 * concerned by what they define, or altogether when no definition has to be looked for. same: the results are of the
 * same options. */
void cache_cxx_restore(const struct cache_cxx *cxx, struct scan *scan, bool same);
/* When all definitions are known: takes `holds` from the files that ask for one that has changed. */
void cache_cxx_compare_definitions(const struct cache_cxx *cxx, struct scan *scan);
/* All C++ files are as they were. */
bool cache_cxx_same(const struct cache_cxx *cxx, const struct scan *scan);
void cache_cxx_put(const struct cache_cxx *cxx, const struct scan *scan, struct cache_writer *writer,
                   bool (*kept)(const struct source_file *file));

#endif
