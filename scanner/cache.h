/* What an earlier scan of the same root has found, so that only what changed is read and analysed again. */
#ifndef SGL_SCANNER_CACHE_H
#define SGL_SCANNER_CACHE_H

#include "scanner/scanner.h"

struct cache;
struct py_export;

/* The cache of a root, empty when there is none or it is not to be trusted. */
struct cache *cache_open(const char *real_root);
void cache_close(struct cache *cache);

/* Is the file, `name` in an open folder, what it was? Then it need not be read: its language, hash, hit and seen are
 * set. For all workers. */
bool cache_known(const struct cache *cache, struct source_file *file, int folder, const char *name);
/* Hash of a file's content. */
uint64_t cache_hash(const uint8_t *bytes, size_t size);

/* The exports that were found in a file of this content, and whether it was looked at for them; false when that is not
 * known. */
bool cache_exports(const struct cache *cache, const struct source_file *file, bool *exported,
                   void (*found)(void *user, const struct py_export *export), void *user);

/* What the run is for. First of these. */
void cache_options(struct cache *cache, const struct options *options);
/* Puts the results of texts that still hold into the files and marks these as `cached`; marks the C++ files that may.
 */
void cache_restore(struct cache *cache, struct scan *scan);
/* The same for C++, when the definitions of all files are known that do not hold. */
void cache_restore_cxx(struct cache *cache, struct scan *scan);
/* The same for Python, when the index of Python is there. */
void cache_restore_python(struct cache *cache, struct scan *scan);
/* Writes what is known now, unless nothing is new. What goes wrong is not said: the next scan takes longer. */
void cache_save(struct cache *cache, struct scan *scan);

/* cache_file.c: the bytes of the root's cache file; NULL when there are none. Only a file of this user, in a folder of
 * this user, that nobody else may write, and whose checksum is right. */
uint8_t *cache_file_read(const char *real_root, size_t *size);
void cache_file_write(const char *real_root, const uint8_t *bytes, size_t size);
#endif
