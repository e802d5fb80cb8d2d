/* Compile databases of the tree (compile_commands.json): which macros, include folders and forced headers a file is
 * compiled with. They only add evidence: a file is always read without them too (cxx_configurations.c). */
#ifndef SGL_CXX_DATABASE_H
#define SGL_CXX_DATABASE_H

#include "scanner/arena.h"
#include "scanner/scanner.h"

/* One way in which files of the tree are compiled. Equal ones are one. */
struct cxx_config {
  const char *text; /* "#define A 1\n#undef B\n", in the order of the command line */
  size_t text_size;
  const struct source_file **forced; /* -include, as far as the tree has them */
  unsigned forced_count;
  const char **folders; /* -iquote, -I, -isystem below the root: "" or "include/" */
  unsigned folders_count;
  bool cuda, cxx;       /* -x cu; or -x c++ for any name */
  const char *database; /* where it stands, relative to the root */
};

/* More ways to compile one file say nothing new. */
#define CXX_MOST_CONFIGS 4

struct cxx_database;

/* Reads the databases at the usual places; what is wrong with one becomes a note of the scan. NULL: there is none. */
struct cxx_database *cxx_database_open(struct scan *scan);
/* Is there a file at one of these places? */
bool cxx_database_there(struct scan *scan);
void cxx_database_free(struct cxx_database *database);
/* A hash of all ways in which this one file is compiled, in their order; 0: none. */
uint64_t cxx_database_ways(const struct scan *scan, const struct cxx_database *database,
                           const struct source_file *file);
/* How the file, or a source that may include it, is compiled; returns how many of `list` were filled. */
unsigned cxx_database_configs(const struct scan *scan, const struct cxx_database *database,
                              const struct source_file *file, const struct cxx_config **list);
/* The header of the tree that an include means by the folders of the command line, or NULL. */
const struct source_file *cxx_config_header(const struct scan *scan, const struct cxx_config *config,
                                            const uint8_t *text, size_t length);

/* --- cxx_commands.c ----------------------------------------------------------------------------------------------- */

/* The arguments of a command, with response files in their place; strings live in the arena. */
struct cxx_arguments {
  char **list;
  size_t count, capacity;
};

/* Splits a command line as a shell does. */
void cxx_arguments_split(struct arena *arena, struct cxx_arguments *arguments, const char *command, size_t size);
void cxx_arguments_add(struct cxx_arguments *arguments, char *text);
/* What the arguments of one compiler call say. Paths are as written: relative to `folder`, which is absolute. */
struct cxx_flags {
  char *text; /* as in cxx_config; owned */
  size_t text_size;
  struct cxx_arguments forced, folders; /* absolute paths */
  bool cuda, cxx;
};
/* The calls in `arguments`, which && and ; join: visits the flags of each that names `source`, or of all when none
 * does. */
void cxx_commands_visit(struct arena *arena, const struct cxx_arguments *arguments, const char *folder,
                        const char *source, void (*visit)(void *user, const struct cxx_flags *flags), void *user);
/* folder/path without "." and ".."; in the arena. */
char *cxx_absolute_path(struct arena *arena, const char *folder, const char *path);

#endif
