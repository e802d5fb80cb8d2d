/* The sgl-compat command: what its files share. Not part of the library.
 *
 *   sgl_compat.c               main, the table of commands, what all commands print alike
 *   sgl_compat_policy_check.c  policy check
 *   sgl_compat_replay.c        replay
 */
#ifndef SGL_COMPAT_TOOL_H
#define SGL_COMPAT_TOOL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { STATUS_OK = 0, STATUS_BAD = 1, STATUS_USAGE = 2 };

/* --- sgl_compat.c --- */

#define TOOL_EXIT_STATUS                                                                                               \
  "exit status:\n"                                                                                                     \
  "  0   done, nothing wrong found\n"                                                                                  \
  "  1   something wrong was found, or an error: named on standard error or in the result\n"                           \
  "  2   wrong usage: nothing was done\n"
#define TOOL_HELP_OPTION "  -h, --help        print this text\n"

/* "sgl-compat: ..." as one line on stderr. */
__attribute__((format(printf, 1, 2))) void tool_error(const char *format, ...);
/* The same, and the end, before anything was done. */
__attribute__((format(printf, 1, 2), noreturn)) void tool_usage(const char *format, ...);
/* realloc that ends the command where there is no memory. */
void *tool_realloc(void *memory, size_t size);
/* The whole file; ended by a zero that does not count. NULL after an error was said. */
char *tool_read(const char *path, size_t *size);

enum tool_colour { TOOL_PLAIN = 0, TOOL_RED = 31, TOOL_GREEN = 32, TOOL_YELLOW = 33 };
/* Prints text with its control characters made visible, in a colour on a terminal, and blanks up to `width`. */
void tool_print(const char *text, enum tool_colour colour, int width);
/* A JSON string of any bytes: what is no UTF-8 becomes \xNN. NULL gives null. */
json_t *tool_json(const char *text);
/* Prints the value and frees it. */
void tool_print_json(json_t *value);

/* --- the commands: argv[0] is the last word of the command's name; each returns the exit status. --help has been
 * dealt with. --- */

int tool_policy_check(int argc, char **argv);
int tool_replay(int argc, char **argv);

/* Each file has the help text of its commands. */
extern const char tool_policy_check_help[], tool_replay_help[];

#endif
