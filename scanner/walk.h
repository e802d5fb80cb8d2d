/* Which files belong to the tree. */
#ifndef SGL_SCANNER_WALK_H
#define SGL_SCANNER_WALK_H

#include "scanner/scanner.h"

struct walk {
  struct scan *scan;
  void (*each)(void *user, struct source_file *file); /* called for each file as soon as it is found; NULL: nobody */
  void *user;
  /* The walk's own. Files are in the order of the walk; each stays where it is until walk_close. */
  struct source_file **files;
  size_t files_count, files_capacity, notes_capacity;
};

/* Goes through scan->root: real_root, notes and ignored_count of the scan. Returns false after writing one line. */
bool walk_root(struct walk *walk, char *message, size_t message_size);
/* Puts the files into the scan, sorted, each once. Needed in both cases. */
void walk_close(struct walk *walk);

#endif
