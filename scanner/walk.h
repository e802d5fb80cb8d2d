/* Which files belong to the tree. */
#ifndef SGL_SCANNER_WALK_H
#define SGL_SCANNER_WALK_H

#include "scanner/scanner.h"

/* Goes through scan->root with `threads` workers: real_root, files, notes and ignored_count of the scan; files that an
 * earlier scan knows are marked so. Returns false after writing one line. */
bool walk_root(struct scan *scan, unsigned threads, char *message, size_t message_size);

#endif
