/* sgl-migrate scan and fix. */
#include "scanner/baseline.h"
#include "scanner/command.h"
#include "scanner/report.h"
#include "scanner/settings.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The verb of the first line and what follows the options differ; the options are the same. */
static const char help_scan[] = "usage: sgl-migrate scan [OPTION]... PATH...\n"
                                "List uses of removed sgl_kernel names.\n";
static const char help_fix[] = "usage: sgl-migrate fix [OPTION]... PATH...\n"
                               "Rewrite the uses of removed sgl_kernel names that are safe to rewrite.\n";
static const char help_options[] =
    "\n"
    "PATH is a source tree or a file. Folders of version control, installed packages, virtual environments and build\n"
    "output are left out, and what git ignores; name such a folder as PATH to look into it.\n"
    "\n"
    "options:\n"
    "  --kernel VERSION   kernel release that the code has to run with; a name is removed when this release no longer\n"
    "                     has it; or a requirements file or site-packages folder that says which release that is\n"
    "                     (default: what the tree's own requirements say, else the newest release of the catalog)\n"
    "  --to ROUTE         what calls are rewritten to: jit (this project's kernels) or sglang@VERSION (the module "
    "that\n"
    "                     has the function in that sglang release) (default: the sglang that the tree's own\n"
    "                     requirements name, else jit)\n"
    "  --catalog FILE     use this catalog in place of the built-in one\n"
    "  -j, --jobs N       worker threads (default: one a processor)\n"
    "  -h, --help         print this text\n";
static const char help_scan_options[] =
    "  --format FORMAT    what is printed on standard output: text (default), sarif (SARIF 2.1.0), json (all facts),\n"
    "                     github (annotations of GitHub Actions), junit (JUnit XML), html (one page for a browser)\n"
    "  --baseline FILE    accept the uses that this file lists; others count, and entries without a use are an error\n"
    "  --write-baseline FILE\n"
    "                     accept all live uses that are there now, and write that file\n";
static const char help_verdicts[] =
    "\n"
    "Each result is PATH:LINE:COLUMN: VERDICT NAME: MESSAGE and the source line, with one of these verdicts:\n"
    "  rewrite   a live use that fix edits safely\n"
    "  report    a live use that needs a person; fix leaves it alone\n"
    "  mention   a comment, documentation or log text\n"
    "\n"
    "The exit status is described by sgl-migrate --help.\n";

static const struct format {
  const char *name;
  bool (*print)(const struct report *report);
} formats[] = {
    {"text", report_text},     {"sarif", report_sarif}, {"json", report_json},
    {"github", report_github}, {"junit", report_junit}, {"html", report_html},
};
#define FORMATS (sizeof formats / sizeof *formats)

struct command {
  bool fix;
  const struct format *format;
  struct choice choice;
  const char *baseline, *write_baseline; /* NULL: not given */
  unsigned threads;
  char **paths;
  size_t paths_count;
};

static unsigned parse_jobs(const char *text) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  if (errno || *end || *text < '0' || *text > '9' || value == 0 || value > 1024)
    usage_error("--jobs '%s': a number from 1 to 1024 is needed", text);
  return (unsigned)value;
}

static const struct format *parse_format(const char *text) {
  for (size_t i = 0; i < FORMATS; i++)
    if (strcmp(text, formats[i].name) == 0)
      return &formats[i];
  usage_error("--format '%s': text, sarif, json, github, junit or html is needed", text);
}

static void parse(int argc, char **argv, bool fix, struct command *command) {
  enum { OPTION_KERNEL = 256, OPTION_TO, OPTION_FORMAT, OPTION_CATALOG, OPTION_BASELINE, OPTION_WRITE_BASELINE };
  static const struct option options[] = {
      {"kernel", required_argument, NULL, OPTION_KERNEL},
      {"to", required_argument, NULL, OPTION_TO},
      {"format", required_argument, NULL, OPTION_FORMAT},
      {"catalog", required_argument, NULL, OPTION_CATALOG},
      {"baseline", required_argument, NULL, OPTION_BASELINE},
      {"write-baseline", required_argument, NULL, OPTION_WRITE_BASELINE},
      {"jobs", required_argument, NULL, 'j'},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0},
  };
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  *command = (struct command){.fix = fix, .threads = processors > 0 && processors <= 1024 ? (unsigned)processors : 1};
  const char *format = NULL;
  int option;
  opterr = 0;
  while ((option = getopt_long(argc, argv, ":hj:", options, NULL)) != -1) {
    switch (option) {
    case OPTION_KERNEL:
      command->choice.kernel = optarg;
      break;
    case OPTION_TO:
      command->choice.to = optarg;
      break;
    case OPTION_FORMAT:
      format = optarg;
      break;
    case OPTION_CATALOG:
      command->choice.catalog = optarg;
      break;
    case OPTION_BASELINE:
      command->baseline = optarg;
      break;
    case OPTION_WRITE_BASELINE:
      command->write_baseline = optarg;
      break;
    case 'j':
      command->threads = parse_jobs(optarg);
      break;
    case 'h':
      fputs(fix ? help_fix : help_scan, stdout);
      fputs(help_options, stdout);
      fputs(fix ? "" : help_scan_options, stdout);
      fputs(help_verdicts, stdout);
      exit(command_finish(0));
    default:
      usage_option(option, argv);
    }
  }
  if (optind == argc)
    usage_error("%s needs at least one path; see sgl-migrate --help", argv[0]);
  if (format && command->fix)
    usage_error("--format belongs to scan; fix prints text");
  command->format = parse_format(format ? format : "text");
  if (command->fix && (command->baseline || command->write_baseline))
    usage_error("%s belongs to scan", command->baseline ? "--baseline" : "--write-baseline");
  if (command->baseline && command->write_baseline)
    usage_error("--write-baseline accepts what is there now: leave --baseline out");
  command->paths = argv + optind;
  command->paths_count = (size_t)(argc - optind);
}

/* A baseline is of one tree: its paths are below that root. */
static void check_baseline_root(const struct command *command) {
  const char *option = command->baseline ? "--baseline" : command->write_baseline ? "--write-baseline" : NULL;
  struct stat status;
  if (option && (command->paths_count > 1 || (stat(command->paths[0], &status) == 0 && !S_ISDIR(status.st_mode))))
    usage_error("%s needs one folder as PATH, the root of the tree that it is of", option);
}

/* Why the settings' baseline does not count; NULL when it does. */
static const char *no_baseline(const struct command *command) {
  return command->fix              ? "not used: fix has none"
         : command->baseline       ? "not used: the command line has one"
         : command->write_baseline ? "not used: a new one is written"
                                   : NULL;
}

static int run(const struct command *command) {
  if (command->fix)
    signal(SIGPIPE, SIG_IGN); /* a reader that goes away must not stop the work between two files */
  char message[512];
  struct catalog *loaded;
  const struct catalog *catalog = command_catalog(&command->choice, &loaded);
  command_check(&command->choice, catalog);
  check_baseline_root(command);
  struct choice choice = command->choice;
  const char *baseline_path = command->baseline;
  struct settings *settings =
      command_open_settings(command->paths, command->paths_count, &choice, &baseline_path, no_baseline(command));
  struct baseline baseline = {0};
  if (baseline_path)
    command_read_baseline(baseline_path, &baseline);
  struct scan *scans = scan_alloc(NULL, command->paths_count * sizeof *scans);
  struct report report = {.scans = scans, .count = command->paths_count, .fix = command->fix};
  int status = 0;
  bool progress = isatty(STDERR_FILENO);
  for (size_t i = 0; i < command->paths_count; i++) {
    scans[i] = (struct scan){.catalog = catalog, .root = command->paths[i], .settings = &settings[i]};
    if (!scan_walk(&scans[i], scans, i, command->threads, progress, message, sizeof message))
      usage_error("%s", message);
  }
  struct decision decision;
  command_decide(&choice, catalog, scans, command->paths_count, &decision);
  for (size_t i = 0; i < command->paths_count; i++) {
    scans[i].options = decision.options;
    scan_run(&scans[i], command->threads, progress);
  }
  command_say(&choice, catalog, &decision);
  for (size_t i = 0; i < command->paths_count; i++)
    if (command->fix && !fix_all(&scans[i], &report.fixed))
      status |= EXIT_FAULT;
  if (command->write_baseline && !command_write_baseline(command->write_baseline, &scans[0]))
    status |= EXIT_FAULT;
  if (baseline_path) {
    baseline_match(&baseline, &scans[0]);
    report.baseline = &baseline;
  }
  report_count(&report);
  if (!command->format->print(&report))
    status |= EXIT_FAULT;
  command_say_pins(&decision, scans, command->paths_count, command->format->print == report_text ? stdout : stderr);
  fflush(stdout);
  report_trouble(&report);
  status = command_finish(status | report_status(&report.totals));
  report_free(&report);
  baseline_free(&baseline);
  for (size_t i = 0; i < command->paths_count; i++)
    scan_close(&scans[i]);
  free(scans);
  command_close_settings(settings, command->paths_count);
  command_forget(&decision);
  catalog_free(loaded);
  return status;
}

int command_scan(int argc, char **argv) {
  struct command command;
  parse(argc, argv, false, &command);
  return run(&command);
}

int command_fix(int argc, char **argv) {
  struct command command;
  parse(argc, argv, true, &command);
  return run(&command);
}
