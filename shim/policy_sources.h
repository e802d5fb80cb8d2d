/* Where a policy comes from: files and variables, read once in a process. */
#ifndef SGL_COMPAT_POLICY_SOURCES_H
#define SGL_COMPAT_POLICY_SOURCES_H

#include <stdbool.h>
#include <stddef.h>

/* In the order in which they are read; a later one wins. */
enum policy_source_kind {
  POLICY_SYSTEM_FILE,
  POLICY_USER_FILE,
  POLICY_NAMED_FILE, /* by SGL_KERNEL_COMPAT_POLICY_FILE */
  POLICY_VARIABLE,   /* SGL_KERNEL_COMPAT_POLICY */
  POLICY_SOURCES
};

enum { POLICY_MOST = 1 << 20 }; /* bytes of a file */

struct policy_source {
  char name[4096]; /* a file's path, or the variable's name; "" when there is none, as without a HOME */
  char *text;      /* NULL: not there, or not taken */
  size_t size;
  bool missing;      /* the file is not there */
  char problem[256]; /* why it is not taken; "" when it is, or is not to be expected */
};

/* A file is taken when it is a regular one of at most a mebibyte, belongs to root or to this user, and nobody else may
 * write it. A file that a variable names has to be there. Programs that run with more rights than their caller
 * (setuid) get the system's file only. Free with policy_sources_free. */
void policy_sources_read(struct policy_source sources[POLICY_SOURCES]);
void policy_sources_free(struct policy_source sources[POLICY_SOURCES]);

/* "/etc/sgl-kernel-compat/policy"; tests set another one. */
extern const char *policy_system_file;

#endif
