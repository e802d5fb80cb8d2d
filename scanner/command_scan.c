/* sgl-migrate scan. */
#include "scanner/baseline.h"
#include "scanner/changed.h"
#include "scanner/command.h"
#include "scanner/report.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char help_start[] = "usage: sgl-migrate scan [OPTION]... PATH...\n"
                                 "List uses of removed names.\n";
static const char help_scan_options[] =
    "  --format FORMAT    what is printed on standard output: text (default), sarif (SARIF 2.1.0), json (all facts),\n"
    "                     github (annotations of GitHub Actions), junit (JUnit XML), html (one page for a browser)\n"
    "  --baseline FILE    accept the uses that this file lists; others count, and entries without a use are an error\n"
    "  --write-baseline FILE\n"
    "                     accept all live uses that are there now, and write that file\n"
    "  --shard I/N        only the files of part I of N; sgl-migrate merge joins the SARIF logs of all N\n"
    "  --changed          report calls of names that are still there, too, when their arguments or results are others\n"
    "                     than before\n"
    "  --no-cache         read and analyse every file, also those that an earlier scan of the tree knows\n";

static const struct format {
  const char *name;
  bool (*print)(const struct report *report);
} formats[] = {
    {"text", report_text},     {"sarif", report_sarif}, {"json", report_json},
    {"github", report_github}, {"junit", report_junit}, {"html", report_html},
};
#define FORMATS (sizeof formats / sizeof *formats)

static const struct format *parse_format(const char *text) {
  for (size_t i = 0; i < FORMATS; i++)
    if (strcmp(text, formats[i].name) == 0)
      return &formats[i];
  usage_error("--format '%s': text, sarif, json, github, junit or html is needed", text);
}

struct wishes {
  const struct format *format;
  const char *baseline, *write_baseline; /* NULL: not given */
  unsigned shard, shards;                /* 0: the whole */
  bool no_cache, changed;
};

static void parse_shard(const char *text, struct wishes *wishes) {
  int end = 0;
  bool good = text[strspn(text, "0123456789/")] == '\0' &&
              sscanf(text, "%5u/%5u%n", &wishes->shard, &wishes->shards, &end) == 2 && !text[end];
  if (!good || wishes->shard == 0 || wishes->shard > wishes->shards)
    usage_error("--shard '%s': I/N with I from 1 to N is needed, like 2/8", text);
}

static void parse(int argc, char **argv, struct choice *choice, struct wishes *wishes) {
  enum {
    OPTION_FORMAT = COMMAND_OWN_OPTIONS,
    OPTION_BASELINE,
    OPTION_WRITE_BASELINE,
    OPTION_SHARD,
    OPTION_NO_CACHE,
    OPTION_CHANGED
  };
  static const struct option options[] = {
      COMMAND_OPTIONS,
      {"format", required_argument, NULL, OPTION_FORMAT},
      {"baseline", required_argument, NULL, OPTION_BASELINE},
      {"write-baseline", required_argument, NULL, OPTION_WRITE_BASELINE},
      {"shard", required_argument, NULL, OPTION_SHARD},
      {"changed", no_argument, NULL, OPTION_CHANGED},
      {"no-cache", no_argument, NULL, OPTION_NO_CACHE},
      {NULL, 0, NULL, 0},
  };
  int option;
  *wishes = (struct wishes){.format = &formats[0]};
  command_start(choice);
  while ((option = getopt_long(argc, argv, ":hj:", options, NULL)) != -1) {
    switch (option) {
    case OPTION_FORMAT:
      wishes->format = parse_format(optarg);
      break;
    case OPTION_BASELINE:
      wishes->baseline = optarg;
      break;
    case OPTION_WRITE_BASELINE:
      wishes->write_baseline = optarg;
      break;
    case OPTION_SHARD:
      parse_shard(optarg, wishes);
      break;
    case OPTION_CHANGED:
      wishes->changed = true;
      break;
    case OPTION_NO_CACHE:
      wishes->no_cache = true;
      break;
    case 'h':
      command_help(help_start, help_scan_options);
    default:
      command_option(choice, option, argv);
    }
  }
  if (wishes->baseline && wishes->write_baseline)
    usage_error("--write-baseline accepts what is there now: leave --baseline out");
  if (wishes->shards && (wishes->baseline || wishes->write_baseline))
    usage_error("--shard and %s do not go together: a baseline is of the whole tree",
                wishes->baseline ? "--baseline" : "--write-baseline");
  command_paths(choice, argc, argv);
}

/* A baseline is of one tree: its paths are below that root. */
static void check_baseline_root(const struct wishes *wishes, const struct choice *choice) {
  const char *option = wishes->baseline ? "--baseline" : wishes->write_baseline ? "--write-baseline" : NULL;
  struct stat status;
  if (option && (choice->paths_count > 1 || (stat(choice->paths[0], &status) == 0 && !S_ISDIR(status.st_mode))))
    usage_error("%s needs one folder as PATH, the root of the tree that it is of", option);
}

/* Why the settings' baseline does not count; NULL when it does. */
static const char *no_baseline(const struct wishes *wishes) {
  return wishes->baseline         ? "not used: the command line has one"
         : wishes->write_baseline ? "not used: a new one is written"
         : wishes->shards         ? "not used: a shard is not the whole tree"
                                  : NULL;
}

int command_scan(int argc, char **argv) {
  struct choice choice;
  struct wishes wishes;
  struct session session;
  struct baseline baseline = {0};
  int status = 0;
  parse(argc, argv, &choice, &wishes);
  check_baseline_root(&wishes, &choice);
  command_open(&session, &choice, false, no_baseline(&wishes));
  const char *baseline_path = wishes.baseline ? wishes.baseline : session.baseline;
  if (baseline_path)
    command_read_baseline(baseline_path, &baseline);
  if (wishes.changed)
    session.catalog = session.extended = changed_catalog(session.catalog);
  session.options.changed = wishes.changed;
  /* A catalog of the user's may change from scan to scan, a part does not know the whole. */
  session.cache = !wishes.no_cache && !wishes.shards && session.catalog == &catalog_builtin;
  session.shard = wishes.shard;
  session.shards = wishes.shards;
  command_run(&session);
  struct report report = {
      .scans = session.scans, .count = session.count, .shard = wishes.shard, .shards = wishes.shards};
  if (wishes.write_baseline && !command_write_baseline(wishes.write_baseline, &session.scans[0]))
    status |= EXIT_FAULT;
  if (baseline_path) {
    baseline_match(&baseline, &session.scans[0]);
    report.baseline = &baseline;
  }
  report_count(&report);
  if (!wishes.format->print(&report))
    status |= EXIT_FAULT;
  command_say_pins(&session, wishes.format->print == report_text ? stdout : stderr);
  fflush(stdout);
  report_trouble(&report);
  status = command_finish(status | report_status(&report.totals));
  report_free(&report);
  baseline_free(&baseline);
  command_close(&session);
  return status;
}
