/* The sgl-compat command: what its files share. Not part of the library.
 *
 *   sgl_compat.c               main, the table of commands
 *   sgl_compat_policy_show.c   policy show
 *   sgl_compat_policy_check.c  policy check
 *   sgl_compat_gate.c          gate
 *   sgl_compat_replay.c        replay
 *   sgl_compat_report.c        report, and what its page says too
 *   sgl_compat_report_html.c   report --html
 *   sgl_compat_stats.c         the statistics of many processes, added up
 */
#ifndef SGL_COMPAT_TOOL_H
#define SGL_COMPAT_TOOL_H

#include "jit/tool.h"

/* --- sgl_compat.c --- */

#define TOOL_EXIT_STATUS                                                                                               \
  "exit status:\n"                                                                                                     \
  "  0   done, nothing wrong found\n"                                                                                  \
  "  1   something wrong was found, or an error: named on standard error or in the result\n"                           \
  "  2   wrong usage: nothing was done\n"
#define TOOL_HELP_OPTION "  -h, --help        print this text\n"

/* The whole file; ended by a zero that does not count. NULL after an error was said. */
char *tool_read(const char *path, size_t *size);

/* --- sgl_compat_stats.c --- */

/* The statistics in the files, and in the .jsonl files of the folders among them:
 *
 *   schema "sgl-kernel-compat-report/1", processes, from, until (seconds), jobs, hosts {NAME: true}
 *   symbols {ID: {removed_in, calls, failed, stages {STAGE: calls}, faces {FACE: calls}, processes, jobs, first, last,
 *            callers [{face, place, file, calls, samples, processes}]}}     of those that are used
 *   unused [ID]                                                             the catalog's others
 *   kernels {SPEC: calls}
 *   shadow {ID: {calls, matches, mismatches, ignored, over_budget, errors, processes}}
 *
 * What cannot be read has been said, is left out, and makes `good` false. To be freed. */
json_t *tool_stats(char *const *paths, int count, bool *good);

/* --- sgl_compat_report.c and sgl_compat_report_html.c: of that tree --- */

struct tool_date {
  char text[32]; /* "2026-12-01", or "-" */
};
struct tool_date tool_date(const json_t *seconds);
struct tool_text {
  char text[2000];
};
struct tool_text tool_report_summary(const json_t *tree);
struct tool_text tool_report_stages(const json_t *symbol);
/* Does each use meet an error? */
bool tool_report_only_fails(const json_t *symbol);
struct tool_text tool_report_caller(const json_t *caller);
struct tool_text tool_report_shadow(const json_t *shadow);
/* False after an error was said. */
bool tool_report_page(const json_t *tree, const char *path);

/* --- the commands: argv[0] is the last word of the command's name; each returns the exit status. --help has been
 * dealt with. --- */

int tool_policy_show(int argc, char **argv);
int tool_policy_check(int argc, char **argv);
int tool_gate(int argc, char **argv);
int tool_replay(int argc, char **argv);
int tool_report(int argc, char **argv);

/* Each file has the help text of its commands. */
extern const char tool_policy_show_help[], tool_policy_check_help[], tool_gate_help[], tool_replay_help[],
    tool_report_help[];

#endif
