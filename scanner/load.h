/* Reading, and what of the catalog is in a file. */
#ifndef SGL_SCANNER_LOAD_H
#define SGL_SCANNER_LOAD_H

#include "scanner/scanner.h"

/* Reads the files that no earlier scan knows, with `threads` workers: bytes, seen and hit of each, or in its result why
 * not. */
void load_files(struct scan *scan, unsigned threads, bool progress);

/* Reads one file, hit or not, into file->bytes, or says in its result why not. */
void load_bytes(struct source_file *file);
/* The bytes of a file that was not read since an earlier scan knows it; false when there are none, or no longer those.
 */
bool load_known(struct source_file *file);
/* The facts of a C++ file that has none yet, from its bytes or else from disk. */
void load_facts(struct source_file *file);
void load_drop(struct source_file *file);

#endif
