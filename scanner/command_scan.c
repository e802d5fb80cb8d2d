/* sgl-migrate scan and fix. */
#include "scanner/command.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    "                     has it (default: the newest release of the catalog)\n"
    "  --to ROUTE         what calls are rewritten to: jit (this project's kernels, the default) or sglang@VERSION\n"
    "                     (the module that has the function in that sglang release)\n"
    "  --catalog FILE     use this catalog in place of the built-in one\n"
    "  -j, --jobs N       worker threads (default: one a processor)\n"
    "  -h, --help         print this text\n";
static const char help_scan_options[] =
    "  --format FORMAT    text (default) or sarif, SARIF 2.1.0 on standard output\n";
static const char help_verdicts[] =
    "\n"
    "Each result is PATH:LINE:COLUMN: VERDICT NAME: MESSAGE, with one of these verdicts:\n"
    "  rewrite   a live use that fix edits safely\n"
    "  report    a live use that needs a person; fix leaves it alone\n"
    "  mention   a comment, documentation or log text\n"
    "\n"
    "The exit status is described by sgl-migrate --help.\n";

/* Folders and links that are named in the summary. */
#define NOTES_SHOWN 20

struct command {
  bool fix, sarif;
  struct choice choice;
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

static void parse(int argc, char **argv, bool fix, struct command *command) {
  enum { OPTION_KERNEL = 256, OPTION_TO, OPTION_FORMAT, OPTION_CATALOG };
  static const struct option options[] = {
      {"kernel", required_argument, NULL, OPTION_KERNEL},
      {"to", required_argument, NULL, OPTION_TO},
      {"format", required_argument, NULL, OPTION_FORMAT},
      {"catalog", required_argument, NULL, OPTION_CATALOG},
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
  if (format && strcmp(format, "sarif") != 0 && strcmp(format, "text") != 0)
    usage_error("--format '%s': text or sarif is needed", format);
  command->sarif = format && strcmp(format, "sarif") == 0;
  command->paths = argv + optind;
  command->paths_count = (size_t)(argc - optind);
}

static const char *plural(size_t count) {
  return count == 1 ? "" : "s";
}

static void summary(const struct scan *scans, size_t count, const struct totals *totals, bool fix, size_t fixed) {
  const struct options *options = &scans[0].options;
  size_t live = totals->rewrite + totals->report;
  if (fix)
    printf("%zu file%s fixed; ", fixed, plural(fixed));
  printf("%zu live use%s%s in %zu file%s: %zu to rewrite, %zu for a person; %zu mention%s\n", live, plural(live),
         fix ? " left" : "", totals->files_with_uses, plural(totals->files_with_uses), totals->rewrite, totals->report,
         totals->mention, plural(totals->mention));
  printf("%zu file%s looked at, against kernel %s, to %s%s; %zu not analysed, %zu in part", totals->files,
         plural(totals->files), options->kernel, options->sglang_release ? "sglang@" : "jit",
         options->sglang_release ? options->sglang_release : "", totals->not_analysed, totals->partly);
  if (totals->ignored)
    printf(", %zu ignored by git", totals->ignored);
  printf("\n");
  size_t shown = 0;
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < scans[i].notes_count; k++) {
      const struct walk_note *note = &scans[i].notes[k];
      if (note->failed || shown++ >= NOTES_SHOWN)
        continue;
      char *path = report_path(&scans[i], note->path);
      printf("left out: %s (%s)\n", path, note->reason);
      free(path);
    }
  if (shown > NOTES_SHOWN)
    printf("left out: %zu more; --format sarif names all\n", shown - NOTES_SHOWN);
}

static int run(const struct command *command) {
  if (command->fix)
    signal(SIGPIPE, SIG_IGN); /* a reader that goes away must not stop the work between two files */
  char message[512];
  struct catalog *loaded;
  const struct catalog *catalog = command_catalog(&command->choice, &loaded);
  struct scan *scans = scan_alloc(NULL, command->paths_count * sizeof *scans);
  struct totals totals = {0};
  size_t fixed = 0;
  int status = 0;
  bool progress = isatty(STDERR_FILENO);
  for (size_t i = 0; i < command->paths_count; i++) {
    scans[i] = (struct scan){.catalog = catalog, .root = command->paths[i]};
    if (!scan_walk(&scans[i], scans, i, message, sizeof message))
      usage_error("%s", message);
  }
  struct options options = {0};
  command_options(&command->choice, catalog, &options);
  for (size_t i = 0; i < command->paths_count; i++) {
    scans[i].options = options;
    scan_run(&scans[i], command->threads, progress);
  }
  command_say_options(&command->choice, catalog, &options);
  for (size_t i = 0; i < command->paths_count; i++) {
    if (command->fix && !fix_all(&scans[i], &fixed))
      status |= EXIT_FAULT;
    report_count(&scans[i], &totals);
    if (!command->sarif)
      report_text(&scans[i], !command->fix);
    fflush(stdout);
    report_not_analysed(&scans[i]);
  }
  if (command->sarif && !report_sarif(scans, command->paths_count))
    status |= EXIT_FAULT;
  if (!command->sarif)
    summary(scans, command->paths_count, &totals, command->fix, fixed);
  status = command_finish(status | report_status(&totals));
  for (size_t i = 0; i < command->paths_count; i++)
    scan_close(&scans[i]);
  free(scans);
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
