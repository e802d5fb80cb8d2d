/* The sgl-compat command: what its files share. Not part of the library.
 *
 *   sgl_compat.c               main, the table of commands
 *   sgl_compat_policy_show.c   policy show
 *   sgl_compat_policy_check.c  policy check
 *   sgl_compat_gate.c          gate
 *   sgl_compat_sarif.c         what a scan has found, for gate
 *   sgl_compat_replay.c        replay
 *   sgl_compat_report.c        report, and what its page says too
 *   sgl_compat_report_html.c   report --html
 *   sgl_compat_stats.c         the statistics of many processes, added up
 *   sgl_compat_stats_check.c   is a line of them one?
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

/* The statistics in the files, and in the .jsonl files below the folders among them:
 *
 *   schema "sgl-kernel-compat-report/1", processes, from, until (seconds), jobs, hosts {NAME: true}
 *   complete                                                                false: something could not be read
 *   symbols {ID: {removed_in, calls, failed, stages {STAGE: calls}, faces {FACE: calls}, processes, jobs, job_names [],
 *            first, last, callers [{face, place, file, calls, samples, processes}]}}     of those that are used
 *   not_counted {ID: {faces {FACE: true}, processes}}                       of those whose uses were out of sight
 *   unused [ID]                                                             the catalog's others
 *   kernels {SPEC: calls}, kernels_lost
 *   shadow {ID: {calls, matches, mismatches, ignored, over_budget, errors, processes}}
 *
 * A process counts once, by its newest file. What cannot be read has been said, is left out, and makes `good` false. To
 * be freed. */
json_t *tool_stats(char *const *paths, int count, bool *good);

/* --- sgl_compat_stats_check.c --- */

enum tool_row {
  TOOL_ROW_BAD, /* `why` says it */
  TOOL_ROW_USE,
  TOOL_ROW_KERNEL,
  TOOL_ROW_LOST, /* calls of kernels that had no place in a process's table */
  TOOL_ROW_SHADOW,
  TOOL_ROW_NOT_COUNTED,
  TOOL_ROW_OTHER /* of a kind that this release does not know */
};
enum tool_row tool_stats_row(const json_t *row, char *why, size_t size);
/* The first line. NULL is none. */
bool tool_stats_header(const json_t *header, char *why, size_t size);

/* --- sgl_compat_sarif.c --- */

/* What has been found in one or several logs. */
struct tool_scan {
  json_t *runs;                  /* NULL: none */
  json_int_t files, not_entered; /* the latter on purpose */
  unsigned release;              /* index into compat_releases: the oldest that a run was against */
  char left_out[800];            /* why uses may be missing; "": none are */
};
/* One log more. False after an error was said. json_decref the runs. */
bool tool_scan_read(const char *path, struct tool_scan *scan);
/* How many live uses of a name, and where the first is. */
size_t tool_scan_uses(const struct tool_scan *scan, const char *id, char *first, size_t first_size);
/* Against a release that still has the name a scan says nothing of it. */
bool tool_scan_tells_of(const struct tool_scan *scan, unsigned symbol);

/* --- sgl_compat_report.c and sgl_compat_report_html.c: of that tree --- */

struct tool_date {
  char text[32]; /* "2026-12-01", or "-" */
};
struct tool_date tool_date(const json_t *seconds);
struct tool_text {
  char text[2000];
};
/* "4 processes of 1 job ..." */
struct tool_text tool_report_summary(const json_t *tree);
/* "operator, python": the faces of a name that is not counted there */
struct tool_text tool_report_faces(const json_t *hidden);
/* What is to be said above the names that nobody used. */
struct tool_text tool_report_unused(const json_t *tree);
struct tool_text tool_report_stages(const json_t *symbol);
/* Does each use meet an error? */
bool tool_report_only_fails(const json_t *symbol);
struct tool_text tool_report_caller(const json_t *caller);
/* "jobs: SLURM_JOB_ID=12, SLURM_JOB_ID=13 and 5 others"; "" when nobody has told a job */
struct tool_text tool_report_jobs(const json_t *symbol);
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
