/* sgl-migrate fix. */
#include "scanner/command.h"
#include "scanner/fix.h"
#include "scanner/report.h"

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>

static const char help_start[] = "usage: sgl-migrate fix [OPTION]... PATH...\n"
                                 "Rewrite the uses of removed names that are safe to rewrite.\n";
static const char help_fix_options[] =
    "  --diff             print a unified diff for git apply on standard output, and write nothing\n"
    "  --interactive      show each change and ask whether to make it\n"
    "  --unsafe           rewrite imports too that a try or suppress() around them guards; nothing else\n"
    "  --force            fix files although git could not give them back: uncommitted changes, files not in git yet\n";

struct wishes {
  enum fix_mode mode;
  bool unsafe, force;
};

static void set_mode(struct wishes *wishes, enum fix_mode mode) {
  if (wishes->mode != FIX_WRITE && wishes->mode != mode)
    usage_error("--diff and --interactive exclude each other");
  wishes->mode = mode;
}

static void parse(int argc, char **argv, struct choice *choice, struct wishes *wishes) {
  enum {
    OPTION_DIFF = COMMAND_OWN_OPTIONS,
    OPTION_INTERACTIVE,
    OPTION_UNSAFE,
    OPTION_FORCE,
    OPTION_FORMAT,
    OPTION_BASELINE,
    OPTION_WRITE_BASELINE,
    OPTION_SHARD
  };
  static const struct option options[] = {
      COMMAND_OPTIONS,
      {"diff", no_argument, NULL, OPTION_DIFF},
      {"interactive", no_argument, NULL, OPTION_INTERACTIVE},
      {"unsafe", no_argument, NULL, OPTION_UNSAFE},
      {"force", no_argument, NULL, OPTION_FORCE},
      {"format", required_argument, NULL, OPTION_FORMAT}, /* of scan: a better message than "unknown option" */
      {"baseline", required_argument, NULL, OPTION_BASELINE},
      {"write-baseline", required_argument, NULL, OPTION_WRITE_BASELINE},
      {"shard", required_argument, NULL, OPTION_SHARD},
      {NULL, 0, NULL, 0},
  };
  int option;
  command_start(choice);
  while ((option = getopt_long(argc, argv, ":hj:", options, NULL)) != -1) {
    switch (option) {
    case OPTION_DIFF:
      set_mode(wishes, FIX_DIFF);
      break;
    case OPTION_INTERACTIVE:
      set_mode(wishes, FIX_ASK);
      break;
    case OPTION_UNSAFE:
      wishes->unsafe = true;
      break;
    case OPTION_FORCE:
      wishes->force = true;
      break;
    case OPTION_FORMAT:
      usage_error("--format belongs to scan; fix prints text");
    case OPTION_BASELINE:
      usage_error("--baseline belongs to scan");
    case OPTION_WRITE_BASELINE:
      usage_error("--write-baseline belongs to scan");
    case OPTION_SHARD:
      usage_error("--shard belongs to scan");
    case 'h':
      command_help(help_start, help_fix_options);
    default:
      command_option(choice, option, argv);
    }
  }
  command_paths(choice, argc, argv);
  if (wishes->mode == FIX_ASK && !fix_ask_possible())
    usage_error("--interactive needs a terminal to ask on; --diff shows the changes without one");
}

int command_fix(int argc, char **argv) {
  struct choice choice;
  struct wishes wishes = {FIX_WRITE, false, false};
  char message[512];
  parse(argc, argv, &choice, &wishes);
  signal(SIGPIPE, SIG_IGN); /* a reader that goes away must not stop the work between two files */
  struct session session;
  command_open(&session, &choice, wishes.unsafe, "not used: fix has none");
  command_run(&session);
  if (wishes.mode != FIX_DIFF && !wishes.force && !fix_git_clean(session.scans, session.count, message, sizeof message))
    usage_error("%s", message);
  struct fix_totals totals = {0};
  for (size_t i = 0; i < session.count; i++)
    fix_all(&session.scans[i], wishes.mode, &totals);
  struct report report = {.scans = session.scans, .count = session.count, .fix = true, .fixed = totals.fixed};
  report_count(&report);
  FILE *summary = stdout;
  bool shown = true;
  if (wishes.mode == FIX_DIFF) { /* standard output is the diff's alone */
    summary = stderr;
    fprintf(stderr, "sgl-migrate: %zu file%s would change; %zu use%s a person: sgl-migrate scan lists them\n",
            totals.fixed, report_plural(totals.fixed), report.totals.report,
            report.totals.report == 1 ? " needs" : "s need");
  } else {
    shown = report_text(&report);
  }
  command_say_pins(&session, summary);
  fflush(stdout);
  report_trouble(&report);
  int status = (totals.failed || !shown ? EXIT_FAULT : 0) | report_status(&report.totals);
  report_free(&report);
  command_close(&session);
  return command_finish(status);
}
