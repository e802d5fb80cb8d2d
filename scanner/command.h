/* The command line of sgl-migrate: main.c chooses the command, command_*.c are the commands, command.c is what they
 * share.
 */
#ifndef SGL_SCANNER_COMMAND_H
#define SGL_SCANNER_COMMAND_H

#include <stdio.h>

#include "scanner/pins.h"
#include "scanner/scanner.h"

/* A command reads its own options from argv; argv[0] is its name. It returns the exit status, or ends the process
 * through usage_error. */
int command_scan(int argc, char **argv);
int command_fix(int argc, char **argv);
int command_merge(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_audit(int argc, char **argv);
int command_doctor(int argc, char **argv);

/* One line on standard error, and the end of the process with EXIT_USAGE. */
__attribute__((format(printf, 1, 2), noreturn)) void usage_error(const char *format, ...);
/* For getopt_long with opterr = 0 and ":" in front: which option is wrong, and why. */
__attribute__((noreturn)) void usage_option(int option, char **argv);
/* Output that did not arrive is an error, also of --help: EXIT_FAULT is added. */
int command_finish(int status);

/* The catalog, proved: a fault in the user's one would hide uses. path NULL: the built-in one, and *loaded is NULL;
 * else *loaded is to be freed. */
const struct catalog *command_catalog(const char *path, struct catalog **loaded);
/* Says on standard error that the catalog does not know a release as new as that. */
void command_note_kernel(const struct catalog *catalog, const char *kernel);

/* --- what scan and fix are given --- */

struct choice {
  const char *kernel, *to, *catalog; /* NULL: not given */
  unsigned threads;
  char **paths;
  size_t paths_count;
};
enum { COMMAND_KERNEL = 256, COMMAND_TO, COMMAND_CATALOG, COMMAND_OWN_OPTIONS };
/* Rows for getopt_long; a command's own options have numbers from COMMAND_OWN_OPTIONS on. */
#define COMMAND_OPTIONS                                                                                                \
  {"kernel", required_argument, NULL, COMMAND_KERNEL}, {"to", required_argument, NULL, COMMAND_TO},                    \
      {"catalog", required_argument, NULL, COMMAND_CATALOG}, {"jobs", required_argument, NULL, 'j'}, {                 \
    "help", no_argument, NULL, 'h'                                                                                     \
  }
void command_start(struct choice *choice);
/* Takes one of COMMAND_OPTIONS, or ends the process because the option is wrong. */
void command_option(struct choice *choice, int option, char **argv);
/* Prints the help of a command, its own options at the end of the list, and ends the process. */
__attribute__((noreturn)) void command_help(const char *start, const char *own_options);
/* What is left of the command line. */
void command_paths(struct choice *choice, int argc, char **argv);

/* --- one run over all paths --- */

struct session {
  const struct catalog *catalog;
  struct catalog *loaded;   /* NULL for the built-in one */
  struct catalog *extended; /* of --changed; owned, NULL: none */
  struct scan *scans;       /* one a path */
  size_t count;
  struct options options;
  struct pins tree, given;           /* the pins of the trees; those of the file or folder of --kernel */
  const struct pin *kernel, *sglang; /* the pins that decided; NULL: the command line did, or the catalog */
  struct settings *settings;         /* one a path */
  const char *baseline;              /* what the settings say; NULL: nothing */
  struct choice choice;              /* with what the settings say */
  bool cache;                        /* results of an earlier scan may serve, set before command_run */
  unsigned shard, shards;            /* the part that is analysed, set before command_run; 0: the whole */
};
/* Reads the catalog and the settings. no_baseline: why their baseline does not count; NULL when it does. */
void command_open(struct session *session, const struct choice *choice, bool unsafe, const char *no_baseline);
/* Reads and analyses everything, and says on standard error against what. */
void command_run(struct session *session);
void command_close(struct session *session);
/* The pins that contradict each other or the results, one line each. */
void command_say_pins(const struct session *session, FILE *stream);

/* command_settings.c: the settings of each path, said aloud. What the command line does not give goes into choice; the
 * baseline of the one path into *baseline, unless no_baseline says why not. To be closed after the scans. */
struct settings;
struct settings *command_open_settings(char *const *paths, size_t count, struct choice *choice, const char **baseline,
                                       const char *no_baseline);
void command_close_settings(struct settings *settings, size_t count);

/* command_baseline.c: reads a baseline; its faults are said, one line each, and end the process with EXIT_USAGE. */
struct baseline;
void command_read_baseline(const char *path, struct baseline *baseline);
/* Accepts all live uses of the scan, in a new baseline; false after saying why it could not be written. */
bool command_write_baseline(const char *path, struct scan *scan);

#endif
