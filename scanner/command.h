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

/* One line on standard error, and the end of the process with EXIT_USAGE. */
__attribute__((format(printf, 1, 2), noreturn)) void usage_error(const char *format, ...);
/* For the default case of getopt_long (with opterr = 0 and ":" in front): which option is wrong, and why. */
__attribute__((noreturn)) void usage_option(int option, char **argv);
/* Output that did not arrive is an error, also of --help: EXIT_FAULT is added. */
int command_finish(int status);

/* What --kernel, --to and --catalog say. */
struct choice {
  const char *kernel, *to, *catalog; /* NULL: not given */
};
/* The catalog, proved: a fault in the user's one would hide uses. *loaded is to be freed; NULL for the built-in one. */
const struct catalog *command_catalog(const struct choice *choice, struct catalog **loaded);
/* Refuses what is no release, before anything is read. */
void command_check(const struct choice *choice, const struct catalog *catalog);
/* What the trees are checked against and rewritten to, and which pins said so. */
struct decision {
  struct options options;
  struct pins tree, given;           /* the pins of the trees; those of the file or folder of --kernel */
  const struct pin *kernel, *sglang; /* NULL: not a pin decided, but the command line or the catalog */
};
/* Of trees that were walked. To be forgotten after the scans are closed. */
void command_decide(const struct choice *choice, const struct catalog *catalog, const struct scan *scans, size_t count,
                    struct decision *decision);
void command_forget(struct decision *decision);
/* The pins that contradict each other or the results of the scans, one line each. */
void command_say_pins(const struct decision *decision, const struct scan *scans, size_t count, FILE *stream);
/* On standard error: what was taken because nothing was given, and that the catalog may be too old. */
void command_say(const struct choice *choice, const struct catalog *catalog, const struct decision *decision);

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

/* fix.c: edits all files of the scan that have edits; counts those that were. false when one could not be. */
bool fix_all(struct scan *scan, size_t *fixed);

#endif
