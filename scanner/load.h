/* Reading: each file as soon as the walk has found it, and what of the catalog is in it. */
#ifndef SGL_SCANNER_LOAD_H
#define SGL_SCANNER_LOAD_H

#include "scanner/scanner.h"

struct loader;
/* Starts `threads` - 1 workers; the caller's thread is the last one, in loader_finish. */
struct loader *loader_start(const struct scan *scan, unsigned threads, bool progress);
/* For walk_root: the file must stay where it is until loader_finish has returned. */
void loader_add(void *loader, struct source_file *file);
/* All files that were added are read: bytes, seen and hit of each, or in its result why not. */
void loader_finish(struct loader *loader);

/* Reads one file, hit or not, into file->bytes, or says in its result why not. */
void load_bytes(struct source_file *file);
/* The bytes of a file that was not read since an earlier scan knows it; false when there are none, or no longer those.
 */
bool load_known(struct source_file *file);
/* The facts of a C++ file that has none yet, from its bytes or else from disk. */
void load_facts(struct source_file *file);
void load_drop(struct source_file *file);

#endif
