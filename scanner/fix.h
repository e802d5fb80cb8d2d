/* The command fix, from the edits of the fronts to files.
 *
 *   command_fix.c  the command line
 *   fix.c          one file after the other: which edits, the checks, what is done with the new content
 *   fix_check.c    is the new content as good as the old?
 *   fix_ask.c      --interactive: a person chooses the edits
 *   fix_diff.c     unified diffs
 *   fix_git.c      the work trees that the files are in
 *   edit.c         new content, and how it gets into a file */
#ifndef SGL_SCANNER_FIX_H
#define SGL_SCANNER_FIX_H

#include "scanner/scanner.h"

#include <stdio.h>

enum fix_mode { FIX_WRITE, FIX_ASK, FIX_DIFF };

struct fix_totals {
  size_t fixed, edits; /* files and edits that were written or shown */
  bool failed;         /* a file could not be fixed; it was said why */
  bool quit;           /* the person had enough */
};

/* All files of a scan that have edits. With FIX_DIFF the diffs go to standard output and nothing is written. */
void fix_all(struct scan *scan, enum fix_mode mode, struct fix_totals *totals);

/* fix_check.c: analyses the new content of a file in place of its old one. new_bytes is what the first `edits` edits of
 * file->result make of it, as edit_compose has sorted them. Good is: no new edit but those that were not made, no use
 * that was not there before, nothing that a parser refuses now. Returns false after writing one line. *after is the
 * result of the new content; to be freed. file->bytes is the old content again afterwards. */
bool fix_check(const struct scan *scan, struct source_file *file, size_t edits, const uint8_t *new_bytes,
               size_t new_size, struct result *after, char *message, size_t message_size);

/* fix_ask.c: shows one group of edits after the other and asks. Moves the accepted ones to the front of
 * file->result.edits and returns how many they are; *quit: no more files. */
size_t fix_ask(struct source_file *file, const char *shown, bool *quit);
/* Is there a terminal to ask on? */
bool fix_ask_possible(void);

/* fix_diff.c: a unified diff in git's form with this path; owned by the caller. NULL: out of memory. */
char *fix_diff(const char *path, const uint8_t *old_bytes, size_t old_size, const uint8_t *new_bytes, size_t new_size,
               size_t *size);

/* fix_git.c */
/* Can git give back every file that has edits, and does its diff show nothing else? A tree in no repository is fine.
 * Returns false after writing one line. */
bool fix_git_clean(const struct scan *scans, size_t count, char *message, size_t message_size);
/* The path for a diff: from the top of the work tree that the root is in, else from the current folder, else from the
 * root. Owned by the caller. */
char *fix_git_path(const struct scan *scan, const struct source_file *file);

#endif
